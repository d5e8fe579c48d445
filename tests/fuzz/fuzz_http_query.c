/* SPDX-License-Identifier: Apache-2.0 */
/* The query of a target: any text. An accepted one has each name once, and has the same meaning
 * when written again with every byte encoded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static char *encode(char *to, const char *s)
{
	for (; *s; s++)
		to += sprintf(to, "%%%02x", (unsigned char)*s);
	return to;
}

static char *write_again(const struct pair *p, size_t n)
{
	size_t size = 1;
	char *text, *at;

	for (size_t i = 0; i < n; i++)
		size += 3 * (strlen(p[i].name) + strlen(p[i].value)) + 2;
	at = text = malloc(size);
	must(text != NULL);
	for (size_t i = 0; i < n; i++) {
		if (i)
			*at++ = '&';
		at = encode(at, p[i].name);
		*at++ = '=';
		at = encode(at, p[i].value);
	}
	*at = '\0';
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1), *again;
	struct pair *p = NULL, *q = NULL;
	size_t n = 0, m = 0;

	must(text != NULL);
	if (size) /* strndup() would read on to a NUL under the strict checks */
		memcpy(text, data, size);
	if (http_parse_query(text, &p, &n)) {
		must(!p && !n);
		free(text);
		return 0;
	}
	must(n <= HEADERS_MAX);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < i; k++)
			must(strcmp(p[i].name, p[k].name) != 0);
	}
	again = write_again(p, n);
	must(!http_parse_query(again, &q, &m) && m == n);
	for (size_t i = 0; i < n; i++)
		must(!strcmp(p[i].name, q[i].name) && !strcmp(p[i].value, q[i].value));
	free(again);
	free(q);
	free(p);
	free(text);
	return 0;
}
