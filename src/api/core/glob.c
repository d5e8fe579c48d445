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

/* Where to go on after a mismatch: the pattern after a star, and the text it did not match yet. */
struct retry {
	const char *glob, *text;
};

/* "**" takes one more byte, and as a whole part of a path all up to the next slash. */
static bool widen(struct retry *deep, bool directory)
{
	const char *last = deep->text;

	if (deep->glob && directory)
		last = strchr(last, '/');
	if (!last)
		return false;
	deep->text = last + 1;
	return true;
}

/* The end of "**", or of "**" with its slash if that is a whole part of the path. */
static const char *skip_deep(const char *begin, const char *glob, bool *ret_directory)
{
	bool first = glob == begin || glob[-1] == '/';

	glob += strspn(glob, "*");
	*ret_directory = first && *glob == '/';
	return glob + *ret_directory;
}

static bool is_deep(const char *glob)
{
	return glob[0] == '*' && glob[1] == '*';
}

static bool matches_nothing(const char *begin, const char *glob)
{
	bool ignored;

	while (*glob == '*')
		glob = is_deep(glob) ? skip_deep(begin, glob, &ignored) : glob + 1;
	return !*glob;
}

bool glob_match(const char *glob, const char *text)
{
	const char *begin = glob;
	struct retry star = { 0 }, deep = { 0 };
	bool directory = false;

	while (*text) {
		if (is_deep(glob)) {
			glob = skip_deep(begin, glob, &directory);
			deep = (struct retry){ glob, text };
			star = (struct retry){ 0 };
		} else if (*glob == '*') {
			star = (struct retry){ ++glob, text };
		} else if (*glob == *text || (*glob == '?' && *text != '/')) {
			glob++;
			text++;
		} else if (star.glob && *star.text != '/') {
			glob = star.glob;
			text = ++star.text;
		} else if (widen(&deep, directory)) {
			glob = deep.glob;
			text = deep.text;
			star = (struct retry){ 0 };
		} else {
			return false;
		}
	}
	return matches_nothing(begin, glob);
}
