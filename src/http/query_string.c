/* SPDX-License-Identifier: Apache-2.0 */
#include "http/internal.h"

#include <string.h>

#include "base/percent.h"

static bool has(const struct pair *p, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(p[i].name, name))
			return true;
	}
	return false;
}

bool http_parse_query(char *text, struct pair **ret, size_t *ret_n)
{
	auto_free struct pair *all = calloc(HEADERS_MAX, sizeof(*all));
	size_t n = 0;
	char *save = NULL;

	if (!all)
		return false;
	for (char *s = strtok_r(text, "&", &save); s; s = strtok_r(NULL, "&", &save)) {
		char *value = strchrnul(s, '=');

		if (*value)
			*value++ = '\0';
		if (!percent_decode(s, true) || !percent_decode(value, true) || n == HEADERS_MAX ||
		    has(all, n, s))
			return false;
		all[n++] = (struct pair){ s, value };
	}
	*ret = steal_ptr(&all);
	*ret_n = n;
	return true;
}
