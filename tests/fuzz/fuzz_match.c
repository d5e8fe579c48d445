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

/* fits[j]: the rest of the pattern matches the text from j on. */
static bool slow_glob(const char *glob, const char *text)
{
	bool fits[2][TEXT_MAX + 1] = { 0 };
	size_t len = strlen(text);
	int now = 0;

	fits[now][len] = true;
	for (size_t i = strlen(glob); i-- > 0;) {
		now = !now;
		for (size_t j = len + 1; j-- > 0;) {
			if (glob[i] == '*')
				fits[now][j] = fits[!now][j] || (j < len && fits[now][j + 1]);
			else
				fits[now][j] = j < len && (glob[i] == '?' || glob[i] == text[j]) &&
					       fits[!now][j + 1];
		}
	}
	return fits[now][0];
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
