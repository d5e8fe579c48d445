/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bytes of one direction of a connection in any pieces and writes down what it saw, one
 *line for each message:
 *
 *	request GET /a%20b keep [abc]		a message with its body; close: the last one
 *	response 200 keep [abc]
 *	interim 100
 *	tunnel
 *	error 400 Host: missing
 *
 * and at last "end", or "more" if a message is incomplete. What it saw must not depend on the
 *pieces. The buffer has exactly the size of its content and moves with every piece. */
#ifndef LODGE_TESTS_HTTP1_READER_H
#define LODGE_TESTS_HTTP1_READER_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http1/http1_chunked.h"
#include "http1/http1_framing.h"
#include "http1/http1_request.h"
#include "http1/http1_response.h"

enum { READER_HEADERS = 32 };

enum reader_at { READER_HEAD, READER_BODY, READER_STOPPED };

struct reader {
	bool responses;
	unsigned to; /* what the responses answer */
	struct http1_limits limits;
	/* or NULL */
	void (*on_head)(const struct http1_head *h, const struct http1_framing *f);
	void (*on_body)(const struct http1_framing *f, const char *body, size_t len);

	enum reader_at at;
	struct http1_head head;
	struct http1_header headers[READER_HEADERS];
	struct http1_framing framing;
	struct http1_chunked chunked;
	struct http1_error err;
	uint64_t left;
	char *in, *body, *log;
	size_t in_len, body_len, log_len;
};

static inline void *reader_alloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		abort();
	return p;
}

static inline void reader_append(char **to, size_t *len, const void *data, size_t n)
{
	char *grown = reader_alloc(*len + n);

	if (*len)
		memcpy(grown, *to, *len);
	if (n)
		memcpy(grown + *len, data, n);
	free(*to);
	*to = grown;
	*len += n;
}

__attribute__((format(printf, 2, 3))) static inline void reader_log(struct reader *r,
								    const char *fmt, ...)
{
	char text[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	reader_append(&r->log, &r->log_len, text, (size_t)n);
}

/* Other bytes than visible ones as %20. */
static inline void reader_log_text(struct reader *r, struct http1_text t)
{
	for (size_t i = 0; i < t.len; i++) {
		bool plain = t.s[i] > ' ' && t.s[i] < 0x7f && t.s[i] != '%';

		reader_log(r, plain ? "%c" : "%%%02x", (unsigned char)t.s[i]);
	}
}

static inline void reader_init(struct reader *r, bool responses, unsigned to)
{
	*r = (struct reader){ .responses = responses, .to = to };
	r->limits = (struct http1_limits){ .head = 1024, .target = 256 };
	r->in = reader_alloc(0);
	http1_head_init(&r->head, r->headers, READER_HEADERS, &r->limits);
}

static inline void reader_fini(struct reader *r)
{
	free(r->in);
	free(r->body);
	free(r->log);
}

static inline void reader_drop(struct reader *r, size_t n)
{
	char *rest = reader_alloc(r->in_len - n);

	if (r->in_len > n)
		memcpy(rest, r->in + n, r->in_len - n);
	free(r->in);
	r->in = rest;
	r->in_len -= n;
}

/* The message is complete. */
static inline void reader_end_message(struct reader *r)
{
	if (r->on_body)
		r->on_body(&r->framing, r->body, r->body_len);
	reader_log(r, " [");
	reader_log_text(r, (struct http1_text){ r->body, r->body_len });
	reader_log(r, "]\n");
	free(r->body);
	r->body = NULL;
	r->body_len = 0;
	r->at = r->framing.keep_alive ? READER_HEAD : READER_STOPPED;
	http1_head_init(&r->head, r->headers, READER_HEADERS, &r->limits);
}

static inline bool reader_stop(struct reader *r, enum http1_result result)
{
	if (result == HTTP1_BAD) {
		if (r->at == READER_BODY)
			reader_log(r, "\n");
		reader_log(r, "error %u %s\n", r->err.status, r->err.why);
		r->at = READER_STOPPED;
	}
	return false;
}

static inline void reader_log_head(struct reader *r)
{
	if (r->responses) {
		reader_log(r, "response %u", r->head.status);
	} else {
		reader_log(r, "request ");
		reader_log_text(r, http1_head_text(&r->head, r->head.method));
		reader_log(r, " ");
		reader_log_text(r, http1_head_text(&r->head, r->head.target));
	}
	reader_log(r, r->framing.keep_alive ? " keep" : " close");
}

/* The head is there, and says where the message ends. */
static inline void reader_begin_body(struct reader *r)
{
	if (r->on_head)
		r->on_head(&r->head, &r->framing);
	if (r->framing.interim) {
		reader_log(r, "interim %u\n", r->head.status);
	} else if (r->framing.body == HTTP1_BODY_TUNNEL || r->head.form == HTTP1_FORM_AUTHORITY) {
		reader_log(r, "tunnel\n");
		r->at = READER_STOPPED;
	} else {
		reader_log_head(r);
		r->at = READER_BODY;
	}
	r->left = r->framing.length;
	r->chunked = (struct http1_chunked){ 0 };
	reader_drop(r, r->head.len);
	http1_head_init(&r->head, r->headers, READER_HEADERS, &r->limits);
	if (r->at == READER_BODY && r->framing.body == HTTP1_BODY_NONE)
		reader_end_message(r);
}

static inline bool reader_read_head(struct reader *r)
{
	enum http1_result result =
		r->responses ? http1_response_parse(&r->head, r->in, r->in_len, &r->err)
			     : http1_request_parse(&r->head, r->in, r->in_len, &r->err);

	if (result == HTTP1_DONE)
		result = r->responses
				 ? http1_framing_of_response(&r->head, r->to, &r->framing, &r->err)
				 : http1_framing_of_request(&r->head, &r->framing, &r->err);
	if (result != HTTP1_DONE)
		return reader_stop(r, result);
	reader_begin_body(r);
	return true;
}

static inline bool reader_read_chunks(struct reader *r)
{
	size_t used, n;
	enum http1_result result =
		http1_chunked_read(&r->chunked, r->in, r->in_len, r->in, &used, &n, &r->err);

	if (result == HTTP1_BAD)
		return reader_stop(r, result);
	reader_append(&r->body, &r->body_len, r->in, n);
	reader_drop(r, used);
	if (result == HTTP1_DONE)
		reader_end_message(r);
	return result == HTTP1_DONE;
}

static inline bool reader_read_body(struct reader *r)
{
	size_t n = r->in_len;

	if (r->framing.body == HTTP1_BODY_CHUNKED)
		return reader_read_chunks(r);
	if (r->framing.body == HTTP1_BODY_LENGTH && n > r->left)
		n = (size_t)r->left;
	reader_append(&r->body, &r->body_len, r->in, n);
	reader_drop(r, n);
	if (r->framing.body != HTTP1_BODY_LENGTH)
		return false;
	r->left -= n;
	if (!r->left)
		reader_end_message(r);
	return !r->left;
}

static inline void reader_feed(struct reader *r, const void *data, size_t len)
{
	reader_append(&r->in, &r->in_len, data, len);
	while (r->at != READER_STOPPED && (r->at == READER_BODY || r->in_len)) {
		if (!(r->at == READER_HEAD ? reader_read_head(r) : reader_read_body(r)))
			break;
	}
}

/* The other side closed the connection. Returns the log, which the reader owns. */
static inline const char *reader_finish(struct reader *r)
{
	bool whole = r->at == READER_STOPPED || (r->at == READER_HEAD && !r->in_len);

	if (r->at == READER_BODY && r->framing.body == HTTP1_BODY_UNTIL_CLOSE) {
		reader_end_message(r);
		whole = true;
	}
	reader_log(r, "%s", whole ? "end\n" : r->at == READER_BODY ? "\nmore\n" : "more\n");
	reader_append(&r->log, &r->log_len, "", 1);
	return r->log;
}

#endif
