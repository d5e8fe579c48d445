/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of repositories: any text. Accepted text is short and printable, cannot be an option, and
 * has a host and a path. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/chat/chat_repo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_taken(const char *url)
{
	const char *slashes = strstr(url, "://"), *at = strchr(url, '@');

	must(strlen(url) <= 2048 && *url != '-' && *url != '/');
	for (const char *p = url; *p; p++)
		must(*p > ' ' && *p <= '~');
	if (slashes && strcspn(url, "@") > (size_t)(slashes - url)) {
		must(slashes[3] != '/' && slashes[3] != '-');
		must(strchr(slashes + 3, '/') && strchr(slashes + 3, '/')[1]);
	} else {
		must(at && at > url && strchr(at, ':') > at + 1 && at[1] != '-');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1);

	must(text != NULL);
	if (size) /* strndup() would read on to a NUL under the strict checks */
		memcpy(text, data, size);
	if (chat_is_repository(text))
		check_taken(text);
	free(text);
	return 0;
}
