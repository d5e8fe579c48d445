/* SPDX-License-Identifier: Apache-2.0 */
/* Validates repository URLs. Strict: invalid ones are rejected before anything is created, and no
 * valid one can be mistaken for an option of a program. */
#include "api/chat/chat_repo.h"

#include <ctype.h>
#include <string.h>

#include "base/array.h"

enum { URL_MAX = 2048 };

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

static bool is_host(const char *host, size_t len)
{
	if (len == 0 || *host == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)host[i]) && !strchr(".-_", host[i]))
			return false;
	return true;
}

static bool is_port(const char *port, size_t len)
{
	return len > 0 && len <= 5 && strspn(port, "0123456789") >= len;
}

/* [user[:password]@]host[:port] */
static bool is_authority(const char *text, size_t len)
{
	const char *at = memchr(text, '@', len), *colon;

	if (*text == '-' || at == text)
		return false;
	if (at) {
		len -= (size_t)(at + 1 - text);
		text = at + 1;
	}
	colon = memchr(text, ':', len);
	if (!colon)
		return is_host(text, len);
	return is_host(text, (size_t)(colon - text)) &&
	       is_port(colon + 1, len - (size_t)(colon + 1 - text));
}

/* user@host:path, as ssh and git accept it. */
static bool is_short(const char *url)
{
	const char *at = strchr(url, '@'), *colon = at ? strchr(at, ':') : NULL;

	return colon && at > url && is_host(url, (size_t)(at - url)) &&
	       is_host(at + 1, (size_t)(colon - at - 1)) && colon[1] && colon[1] != '-';
}

bool chat_is_repository(const char *url)
{
	static const char *const schemes[] = { "https://", "http://", "ssh://", "git://" };

	if (strlen(url) > URL_MAX || !is_printable(url))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t skip = strlen(schemes[i]), len;

		if (strncmp(url, schemes[i], skip) != 0)
			continue;
		len = strcspn(url + skip, "/?#");
		/* without a path it names a host, not a repository */
		return is_authority(url + skip, len) && url[skip + len] == '/' &&
		       url[skip + len + 1];
	}
	return is_short(url);
}
