/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a lodged. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/client_tls.h"
#include "client/internal.h"

static int parse_port(struct client *c, const char *text, const char *usual, struct err *err)
{
	char *end;
	long n = *text ? strtol(text, &end, 10) : 0;

	if (*text && (*end || n < 1 || n > 65535 || text[0] < '0' || text[0] > '9'))
		return err_set(err, ERR_INVALID, "%.100s: port must be between 1 and 65535",
			       c->url);
	c->port = strdup(*text ? text : usual);
	return c->port ? 0 : err_sys(err, ENOMEM, "url");
}

/* Parses HOST[:PORT][/]; an IPv6 address is in brackets. */
static int parse_authority(struct client *c, const char *text, const char *usual, struct err *err)
{
	size_t len = strcspn(text, "/?#"), host = 0, skip = text[0] == '[';

	if (text[len] && strcmp(text + len, "/") != 0)
		return err_set(err, ERR_INVALID,
			       "%.100s: only a host and a port may follow the scheme", c->url);
	c->authority = strndup(text, len);
	if (!c->authority)
		return err_sys(err, ENOMEM, "url");
	host = strcspn(c->authority + skip, skip ? "]" : ":");
	c->host = strndup(c->authority + skip, host);
	if (!c->host)
		return err_sys(err, ENOMEM, "url");
	text = c->authority + skip + host + (skip && c->authority[skip + host] == ']');
	for (const char *p = c->authority; *p; p++)
		if (*p <= ' ' || *p > '~')
			return err_set(err, ERR_INVALID, "url: invalid character in the host");
	if (!host || (skip && c->authority[skip + host] != ']') || (*text && *text != ':') ||
	    (*text == ':' && !text[1]))
		return err_set(err, ERR_INVALID, "%.100s: host is missing", c->url);
	return parse_port(c, *text ? text + 1 : "", usual, err);
}

static int parse_url(struct client *c, const char *url, struct err *err)
{
	if (strncmp(url, "unix:", 5) == 0) {
		c->path = strdup(url + 5);
		c->authority = strdup("localhost");
		if (!c->path || !c->authority)
			return err_sys(err, ENOMEM, "url");
		return *c->path ? 0 : err_set(err, ERR_INVALID, "unix: path is missing");
	}
	if (strchr(url, '@')) /* The message must not quote the URL: it may contain a password. */
		return err_set(err, ERR_INVALID, "url: must not contain a user name or a password");
	if (strncmp(url, "http://", 7) == 0)
		return parse_authority(c, url + 7, "80", err);
	if (strncmp(url, "https://", 8) == 0)
		return parse_authority(c, url + 8, "443", err) < 0 ? -1 : tls_context(&c->tls, err);
	return err_set(err, ERR_INVALID,
		       "\"%.100s\": must be unix:PATH, http://HOST:PORT or https://HOST:PORT", url);
}

/* The key becomes part of a header line. */
static int copy_key(struct client *c, const char *key, struct err *err)
{
	for (const char *p = key; *p; p++)
		if (*p <= ' ' || *p > '~')
			return err_set(err, ERR_INVALID, "key: invalid character at position %zu",
				       (size_t)(p - key) + 1);
	if (asprintf(&c->authorization, "Bearer %s", key) < 0)
		c->authorization = NULL;
	return c->authorization ? 0 : err_sys(err, ENOMEM, "key");
}

int client_new(const char *url, const char *key, struct client **ret, struct err *err)
{
	auto_call(client_free) struct client *c = calloc(1, sizeof(*c));

	if (!c || !(c->url = strdup(url)))
		return err_sys(err, ENOMEM, "client");
	if (parse_url(c, url, err) < 0 || (key && copy_key(c, key, err) < 0))
		return -1;
	*ret = steal_ptr(&c);
	return 0;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	tls_context_free(c->tls);
	if (c->authorization)
		explicit_bzero(c->authorization, strlen(c->authorization));
	free(c->url);
	free(c->authorization);
	free(c->host);
	free(c->port);
	free(c->path);
	free(c->authority);
	free(c);
}

void client_limit(struct client *c, int ms)
{
	c->limit_ms = ms;
}

const char *client_url(const struct client *c)
{
	return c->url;
}
