/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a message, parsed while it arrives: every byte is looked at once. The text stays in
 * the caller's buffer and the headers go into the caller's array; nothing is allocated or copied.
 *
 *	struct http1_header array[64];
 *	struct http1_head h;
 *
 *	http1_head_init(&h, array, 64, &limits);
 *	do
 *		len += read(fd, buf + len, size - len);
 *	while ((r = http1_request_parse(&h, buf, len, &error)) == HTTP1_MORE);
 *	if (r == HTTP1_DONE)
 *		r = http1_framing_of_request(&h, &framing, &error);
 *
 * The body begins at buf + h.len. Parsing again after HTTP1_BAD is an error of the caller. */
#ifndef LODGE_HTTP1_HEAD_H
#define LODGE_HTTP1_HEAD_H

#include "http1/http1_name.h"

enum http1_form {
	HTTP1_FORM_ORIGIN = 0, /* /path?query; always accepted */
	HTTP1_FORM_ABSOLUTE = 1, /* http://host/path?query */
	HTTP1_FORM_AUTHORITY = 2, /* host:port, for CONNECT */
	HTTP1_FORM_ASTERISK = 4, /* *, for OPTIONS */
};

struct http1_limits {
	uint32_t head; /* bytes up to and including the empty line */
	uint32_t target; /* bytes of the request target, or of the reason in a response */
	unsigned forms; /* of targets that are accepted besides HTTP1_FORM_ORIGIN */
	bool any_host; /* the caller checks the value of Host and answers for it (421) */
};

/* Places are offsets into the buffer, so the buffer may move while the head arrives. */
struct http1_span {
	uint32_t at, len;
};

struct http1_header {
	struct http1_span name, value; /* the value without spaces around it */
	enum http1_name known;
};

struct http1_head {
	/* The buffer of the last call. If the caller moves the bytes later, it sets this. */
	const char *base;
	struct http1_header *headers;
	uint32_t nheaders, max_headers;
	uint32_t len; /* with HTTP1_DONE: bytes of the head */
	uint8_t minor; /* HTTP/1.minor */
	/* a request */
	enum http1_form form;
	struct http1_span method, target;
	struct http1_span authority; /* of the target, or else of Host; empty: none */
	struct http1_span path; /* with the query; empty in "http://host" */
	/* a response */
	unsigned status;
	struct http1_span reason;
	/* Known names: those that occur more than once, and the first of each, from 1; 0: none. */
	uint64_t repeated;
	uint16_t first[HTTP1_NAME_COUNT];
	/* where to go on */
	const struct http1_limits *limits;
	uint32_t line, scanned;
	bool has_start, done;
};

/* Also for the next message. At most 65,535 headers. */
void http1_head_init(struct http1_head *h, struct http1_header *headers, size_t max,
		     const struct http1_limits *limits);

struct http1_text http1_head_text(const struct http1_head *h, struct http1_span s);
/* The value of the first header with that name; false: there is none. */
bool http1_head_get(const struct http1_head *h, enum http1_name name, struct http1_text *ret);
/* The same for a name without a number, in lower case. */
bool http1_head_find(const struct http1_head *h, const char *lower, struct http1_text *ret);
/* Whether a Connection header names this option, in lower case. */
bool http1_head_has_option(const struct http1_head *h, const char *lower);
/* Whether a proxy must not forward header i: it belongs to this connection, or Connection names it.
 * Content-Length and Transfer-Encoding belong to the connection too: http1_writer_framing() writes
 * what the next one needs. */
bool http1_head_is_hop_by_hop(const struct http1_head *h, size_t i);

/* Headers of a trailer section, as http1_chunked collects it. Names that would change the framing
 * are refused. */
enum http1_result http1_head_parse_trailers(struct http1_head *h, const char *buf, size_t len,
					    struct http1_error *err);

/* ---- for requests and responses -------------------------------------------------------------- */

/* Sets the error and returns HTTP1_BAD. */
enum http1_result http1_bad(struct http1_error *err, unsigned status, const char *why);
/* The next line, without its end. The bytes are checked before it is complete. */
enum http1_result http1_head_next_line(struct http1_head *h, const char *buf, size_t len,
				       struct http1_span *ret, struct http1_error *err);
/* Header lines up to the empty one; then h->done is set. */
enum http1_result http1_head_next_headers(struct http1_head *h, const char *buf, size_t len,
					  struct http1_error *err);
/* HTTP/1.0 or HTTP/1.1. */
enum http1_result http1_head_parse_version(struct http1_head *h, struct http1_text t,
					   struct http1_error *err);

#endif
