/* SPDX-License-Identifier: Apache-2.0 */
/* What callers select by: a range, a list of tags, a pattern. The input is two texts with a zero
 * between them, preceded by one byte with the size of the file. A range must be inside the file,
 * and a pattern must give the same result as an exhaustive matcher. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 64 };

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_range(const char *text, uint64_t size)
{
	struct range_match r = range_match(text, size);

	must(r.from <= size && r.len <= size - r.from);
	must(r.part || (r.from == 0 && r.len == size && !r.impossible));
	must(r.impossible == (r.part && r.len == 0));
}

static bool fits[TEXT_MAX + 2][TEXT_MAX + 2]; /* the pattern from i on matches the text from j on */

/* "**" at i: `after` is what follows it. */
static bool fits_deep(const char *text, size_t j, size_t after, bool directory)
{
	bool yes = fits[after][j];

	for (; text[j] && !yes; j++)
		yes = (!directory || text[j] == '/') && fits[after][j + 1];
	return yes;
}

static bool fits_at(const char *glob, size_t i, const char *text, size_t j)
{
	size_t after = i + strspn(glob + i, "*");
	bool directory = (i == 0 || glob[i - 1] == '/') && glob[after] == '/';
	bool same = glob[i] == '?' ? text[j] && text[j] != '/' : text[j] == glob[i];

	if (after - i > 1)
		return fits_deep(text, j, after + directory, directory);
	if (after == i)
		return same && fits[i + 1][j + 1];
	return fits[i + 1][j] || (text[j] && text[j] != '/' && fits[i][j + 1]);
}

static bool slow_glob(const char *glob, const char *text)
{
	memset(fits, 0, sizeof(fits));
	for (size_t i = strlen(glob) + 1; i-- > 0;)
		for (size_t j = strlen(text) + 1; j-- > 0;)
			fits[i][j] = glob[i] ? fits_at(glob, i, text, j) : !text[j];
	return fits[0][0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char first[TEXT_MAX + 1] = "", second[TEXT_MAX + 1] = "";
	const uint8_t *zero = size ? memchr(data + 1, 0, size - 1) : NULL;
	size_t n = zero ? (size_t)(zero - data) - 1 : size ? size - 1 : 0;
	size_t m = zero ? size - n - 2 : 0;

	if (!size || n > TEXT_MAX || m > TEXT_MAX)
		return 0;
	memcpy(first, data + 1, n);
	if (m)
		memcpy(second, zero + 1, m);
	check_range(first, data[0]);
	check_range(first, UINT64_MAX);
	must(glob_match(first, second) == slow_glob(first, second));
	must(!etag_match(first, NULL, true));
	if (etag_match(first, second, false))
		must(etag_match(first, second, true) || strncmp(second, "W/", 2) == 0);
	return 0;
}
