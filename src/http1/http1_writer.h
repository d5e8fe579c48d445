/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the head of a message into a buffer of the caller. Nothing that is passed to it can add a
 * line, end the head or contradict the framing: after an invalid name or value, or when the buffer
 * is full, all calls do nothing and http1_writer_end() fails. */
#ifndef LODGE_HTTP1_WRITER_H
#define LODGE_HTTP1_WRITER_H

#include "http1/http1_framing.h"

struct http1_writer {
	char *buf;
	size_t size, len;
	const char *why; /* the first failure; NULL: none */
	bool has_framing;
};

void http1_writer_init(struct http1_writer *w, char *buf, size_t size);
void http1_writer_request(struct http1_writer *w, const char *method, struct http1_text target);
/* reason: NULL for the usual one. */
void http1_writer_status(struct http1_writer *w, unsigned status, const char *reason);
/* Not for Content-Length and Transfer-Encoding. */
void http1_writer_header(struct http1_writer *w, const char *name, const char *value);
/* Header i of a message that was parsed, for proxies. */
void http1_writer_copy(struct http1_writer *w, const struct http1_head *h, size_t i);
/* Content-Length, Transfer-Encoding or none; once. */
void http1_writer_framing(struct http1_writer *w, const struct http1_framing *f);
/* Writes the empty line. 0 and the length of the head, or -1 with w->why. */
int http1_writer_end(struct http1_writer *w, size_t *ret_len);

#endif
