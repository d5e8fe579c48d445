/* SPDX-License-Identifier: Apache-2.0 */
/* What callers choose by: parts of a file, its tag, patterns of names. */
#ifndef LODGE_API_CORE_GLOB_H
#define LODGE_API_CORE_GLOB_H

#include <stdbool.h>
#include <stdint.h>

struct range_match {
	uint64_t from, len; /* inside the file, whatever was asked for */
	bool part; /* not all of it was asked for */
	bool impossible; /* nothing of it is there */
};
/* A Range header, NULL if there is none, for a file of so many bytes. One range of bytes; anything
 * else is as good as none, as the standard has it. */
struct range_match range_match(const char *text, uint64_t size);

/* Whether a list of tags, or "*", has this one. etag NULL: there is no file. weak: marks of weak
 * tags do not count. */
bool etag_match(const char *list, const char *etag, bool weak);

/* '*': any bytes, '?': one. The time is bounded by the product of the lengths. */
bool glob_match(const char *glob, const char *text);

#endif
