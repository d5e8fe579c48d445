/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_CLIENT_CLIENT_STREAM_H
#define LODGE_CLIENT_CLIENT_STREAM_H

#include "client/client_conn.h"
#include "http1/http1_chunked.h"
#include "http1/http1_framing.h"

enum { HEADERS_MAX = 200 };

struct client_stream {
	struct conn conn;
	struct http1_head head;
	struct http1_header headers[HEADERS_MAX];
	char *head_text; /* values end with NUL */
	struct http1_framing framing;
	struct http1_chunked chunked;
	uint64_t left; /* of a body with a length */
	bool over;
	/* stream_lines.c */
	char *lines;
	size_t at, len, capacity;
};

/* Reads the head of the response and takes ownership of *conn. Skips 1xx responses except 101. `to`
 * is a set of http1_answered. */
int stream_begin(struct conn *conn, unsigned to, struct client_stream **ret, struct err *err);
/* Reads the rest, at most ANSWER_MAX bytes, and appends a NUL. */
int stream_all(struct client_stream *s, char **ret, size_t *ret_len, struct err *err);

#endif
