/* SPDX-License-Identifier: Apache-2.0 */
#include "api/match.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct match_range match_range(const char *text, uint64_t size)
{
	struct match_range whole = { .len = size }, r = { .part = true };
	unsigned long long first = 0, last = 0;
	bool open_start, open_end;
	char *end;

	if (!text || strncasecmp(text, "bytes=", 6) != 0)
		return whole;
	text += 6;
	open_start = *text == '-';
	if (strspn(text, "0123456789-") != strlen(text) || strlen(text) > 40)
		return whole;
	if (!open_start)
		first = strtoull(text, &end, 10);
	else
		end = (char *)(uintptr_t)text;
	if (*end++ != '-')
		return whole;
	open_end = !*end;
	if (*end == '-') /* strtoull() would take it for a sign */
		return whole;
	if (!open_end)
		last = strtoull(end, &end, 10);
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

bool match_tag(const char *list, const char *etag, bool weak)
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

bool match_glob(const char *glob, const char *text)
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
