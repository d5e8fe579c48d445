/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a message: what may occur where, and comparison. */
#ifndef LODGE_HTTP1_TEXT_H
#define LODGE_HTTP1_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes inside a buffer of the caller, without a NUL at the end. */
struct http1_text {
	const char *s;
	size_t len;
};

/* A request that is refused with this status, or a response that a proxy answers with 502. The
 * reason is a constant, such as "Host: missing". */
struct http1_error {
	unsigned status;
	const char *why;
};

enum http1_result {
	HTTP1_MORE, /* nothing is wrong so far, but bytes are missing */
	HTTP1_DONE,
	HTTP1_BAD, /* the error is set; the connection cannot be used any more */
};

enum http1_class {
	HTTP1_TOKEN = 1, /* names, methods */
	HTTP1_TARGET = 2, /* visible characters but '#', and bytes from 0x80 on */
	HTTP1_HOST_NAME = 4,
	HTTP1_VALUE = 8, /* no control characters but the tab */
};

extern const uint8_t http1_classes[256];

static inline bool http1_is(char c, enum http1_class class)
{
	return http1_classes[(unsigned char)c] & class;
}

/* Whether all bytes are of the class; true for none. */
bool http1_text_all(struct http1_text t, enum http1_class class);
/* Compares without regard to the case of ASCII letters; `lower` is in lower case. */
bool http1_text_is(struct http1_text t, const char *lower);
/* The same for two texts of a message. */
bool http1_text_same(struct http1_text a, struct http1_text b);
/* Removes spaces and tabs at both ends. */
struct http1_text http1_text_trim(struct http1_text t);
/* Takes the next element of a list with commas; false after the last. Empty elements are skipped.
 */
bool http1_text_next(struct http1_text *list, struct http1_text *ret);
/* The first byte from `at` on that is no HTTP1_VALUE; `end` if there is none. */
size_t http1_text_scan(const char *s, size_t at, size_t end);
int http1_hex(char c); /* -1: not a digit */

#endif
