/* SPDX-License-Identifier: Apache-2.0 */
/* Times, sizes and texts of others as people read them on a terminal. */
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

/* What others wrote, fit for a terminal: control characters, those that turn the direction of a
 * text, and bytes that are no UTF-8 become '?'. At most size - 1 bytes. Returns buf. */
char *human_clean(const char *text, char *buf, size_t size);
/* The same as a new text; NULL: no memory. */
char *human_clean_dup(const char *text);
/* How many columns a clean text takes. */
size_t human_width(const char *clean);
/* Bytes of the longest beginning that fits in so many columns. */
size_t human_fit(const char *clean, size_t columns);

/* JSON in one line or many, and the end of the line. On a terminal no character of a text in it
 * controls that: it is escaped. */
void human_put_json(const char *text, FILE *to);

enum tint { TINT_NONE, TINT_BOLD, TINT_DIM, TINT_GOOD, TINT_BAD, TINT_WARN };

/* A terminal that shows colours, and nobody said NO_COLOR. */
bool human_colours(FILE *to);
/* Escape sequences to begin and end with; both empty for TINT_NONE. */
const char *human_tint(enum tint tint);
const char *human_tint_end(enum tint tint);

#endif
