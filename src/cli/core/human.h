/* SPDX-License-Identifier: Apache-2.0 */
/* Times, sizes and untrusted texts for a terminal. */
#ifndef LODGE_CLI_CORE_HUMAN_H
#define LODGE_CLI_CORE_HUMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { HUMAN_TEXT = 32 };

/* "5s", "3m", "2h", "4d": the largest unit that has two of it, or seconds. Returns buf. */
char *human_span(int64_t ms, char buf[HUMAN_TEXT]);
/* "512", "1.5K", "12M". */
char *human_bytes(uint64_t bytes, char buf[HUMAN_TEXT]);
/* "1 session", "3 sessions"; many NULL: with an s. */
char *human_count(int64_t n, const char *one, const char *many, char buf[HUMAN_TEXT]);
/* The local date and time of epoch milliseconds. */
char *human_when(int64_t ms, char buf[HUMAN_TEXT]);

/* Makes an untrusted text safe for a terminal: control characters, characters that change the
 * direction of text, and bytes that are not UTF-8 become '?'. At most size - 1 bytes. Returns buf.
 */
char *human_clean(const char *text, char *buf, size_t size);
/* The same as a new string; NULL: out of memory. */
char *human_clean_dup(const char *text);
/* The width of a clean text in columns. */
size_t human_width(const char *clean);
/* The length in bytes of the longest prefix that fits. */
size_t human_fit(const char *clean, size_t columns);

/* JSON and a newline. On a terminal, control characters that JSON allows in strings are escaped. */
void human_put_json(const char *text, FILE *to);

enum tint { TINT_NONE, TINT_BOLD, TINT_DIM, TINT_GOOD, TINT_BAD, TINT_WARN };

/* Whether `to` is a terminal that shows colours, and NO_COLOR is not set. */
bool human_colours(FILE *to);
/* Escape sequences to begin and end with; both empty for TINT_NONE. */
const char *human_tint(enum tint tint);
const char *human_tint_end(enum tint tint);

#endif
