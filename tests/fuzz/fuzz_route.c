/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to a handler and its parameters: any text. The results contain no zero, and only a
 * tail (or a caller's key) contains a slash. */
#include <stdlib.h>
#include <string.h>

#include "api/routes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 512 };

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check(const char *path, const struct route_match *m)
{
	const char *tail = strstr(m->route->path, "...}");
	size_t named = 0, len = strlen(path);

	for (const char *at = m->route->path; (at = strchr(at, '{')); at++)
		named++;
	for (size_t i = 0; i < 4; i++) {
		must(strlen(m->params[i]) <= len);
		must(i < named || !*m->params[i]);
		if (i + 1 < named || (i < named && !tail))
			must(*m->params[i] &&
			     (!strchr(m->params[i], '/') || strncmp(m->params[i], "key:", 4) == 0));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const methods[] = { "GET", "HEAD", "PUT", "POST", "DELETE", "X" };
	char path[TEXT_MAX + 1];
	struct err err;

	if (size > TEXT_MAX || memchr(data, 0, size))
		return 0;
	memcpy(path, data, size);
	path[size] = '\0';
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		struct api_arena arena = { 0 };
		struct route_match m;

		if (route_find(&arena, methods[i], path, &m, &err) == 0)
			check(path, &m);
		arena_fini(&arena);
	}
	return 0;
}
