/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/glob.h"

#include <string.h>
#include <strings.h>

/* Returns the end of the digits. A number that is too large becomes the maximum. */
static const char *parse_number(const char *at, uint64_t *ret)
{
	uint64_t v = 0;

	for (; *at >= '0' && *at <= '9'; at++)
		v = v > (UINT64_MAX - 9) / 10 ? UINT64_MAX : v * 10 + (uint64_t)(*at - '0');
	*ret = v;
	return at;
}

struct range_match range_match(const char *text, uint64_t size)
{
	struct range_match whole = { .len = size }, r = { .part = true };
	uint64_t first, last;
	const char *dash, *end;
	bool open_start, open_end;

	if (!text || strncasecmp(text, "bytes=", 6) != 0)
		return whole;
	text += 6;
	dash = parse_number(text, &first);
	if (*dash != '-')
		return whole;
	end = parse_number(dash + 1, &last);
	open_start = dash == text;
	open_end = end == dash + 1;
	if (*end || (open_start && open_end) || (!open_start && !open_end && last < first))
		return whole;
	if (open_start) {
		r.len = last < size ? last : size;
		r.from = size - r.len;
	} else if (first < size) {
		r.from = first;
		r.len = open_end || last >= size ? size - first : last - first + 1;
	}
	r.impossible = r.len == 0;
	return r;
}

bool etag_match(const char *list, const char *etag, bool weak)
{
	size_t len = etag ? strlen(etag) : 0;

	if (!etag)
		return false;
	while (*list) {
		size_t n;

		list += strspn(list, " \t,");
		if (weak && strncmp(list, "W/", 2) == 0)
			list += 2;
		n = strcspn(list, " \t,");
		if ((n == 1 && *list == '*') || (n == len && strncmp(list, etag, n) == 0))
			return true;
		list += n;
	}
	return false;
}

bool glob_match(const char *glob, const char *text)
{
	const char *star = NULL, *from = NULL;

	while (*text) {
		if (*glob == '*') {
			star = glob++;
			from = text;
		} else if (*glob == '?' || *glob == *text) {
			glob++;
			text++;
		} else if (star) {
			glob = star + 1;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return !*glob;
}
