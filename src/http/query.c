/* SPDX-License-Identifier: Apache-2.0 */
#include "http/inside.h"

#include <string.h>

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place: it only gets shorter. */
static bool decode(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '+') {
			*to++ = ' ';
		} else if (*s == '%') {
			int high = hex(s[1]), low = high < 0 ? -1 : hex(s[2]);

			if (low < 0 || !(high | low))
				return false;
			*to++ = (char)(high << 4 | low);
			s += 2;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
	return true;
}

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
		if (!decode(s) || !decode(value) || n == HEADERS_MAX || has(all, n, s))
			return false;
		all[n++] = (struct pair){ s, value };
	}
	*ret = steal_ptr(&all);
	*ret_n = n;
	return true;
}
