/* SPDX-License-Identifier: Apache-2.0 */
/* Matching of Range headers, entity tags and name patterns. */
#ifndef LODGE_API_CORE_GLOB_H
#define LODGE_API_CORE_GLOB_H

#include <stdbool.h>
#include <stdint.h>

struct range_match {
	uint64_t from, len; /* clamped to the file */
	bool part; /* a range was requested */
	bool impossible; /* the range is outside the file */
};
/* Evaluates a Range header (NULL: none) for a file of this size. Only a single byte range counts;
 * anything else is ignored, as RFC 9110 allows. */
struct range_match range_match(const char *text, uint64_t size);

/* Whether a list of tags, or "*", contains etag. etag NULL: the file does not exist. weak: ignores
 * W/ prefixes. */
bool etag_match(const char *list, const char *etag, bool weak);

/* '*' matches any bytes but slashes, '?' one of them; "**" any bytes, and as a part of a path with
 * the slash behind it nothing or whole directories. The time is limited by the length of the
 * pattern and the square of that of the text. */
bool glob_match(const char *glob, const char *text);

#endif
