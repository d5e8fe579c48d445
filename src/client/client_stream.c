/* SPDX-License-Identifier: Apache-2.0 */
/* A response as a stream: its head, then its body in any encoding. */
#include "client/client_stream.h"

#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "client/client_error.h"
#include "http1/http1_response.h"

enum { REASON_MAX = 4 << 10 };

static int fail_malformed(struct err *err, const struct http1_error *why)
{
	return err_set(err, ERR_UNAVAILABLE, "malformed response: %s", why->why);
}

/* ---- the head -------------------------------------------------------------------------------- */

/* Copies the head out of the buffer; a NUL takes the place of what follows each value. */
static int keep_head(struct client_stream *s, struct err *err)
{
	free(s->head_text);
	s->head_text = malloc(s->head.len);
	if (!s->head_text)
		return err_sys(err, ENOMEM, "response");
	memcpy(s->head_text, s->conn.buf + s->conn.at, s->head.len);
	s->conn.at += s->head.len;
	s->head.base = s->head_text;
	for (uint32_t i = 0; i < s->head.nheaders; i++)
		s->head_text[s->headers[i].value.at + s->headers[i].value.len] = '\0';
	return 0;
}

/* The buffer has space for the longest head. */
static int read_head(struct client_stream *s, unsigned to, struct err *err)
{
	static const struct http1_limits limits = { .head = CONN_BUF, .target = REASON_MAX };
	struct conn *c = &s->conn;
	struct http1_error why;
	enum http1_result r;

	http1_head_init(&s->head, s->headers, HEADERS_MAX, &limits);
	while ((r = http1_response_parse(&s->head, c->buf + c->at, c->len - c->at, &why)) ==
	       HTTP1_MORE) {
		ssize_t n = conn_fill(c, true);

		if (n <= 0)
			return problem_broken(n, err);
	}
	if (r != HTTP1_DONE ||
	    http1_framing_of_response(&s->head, to, &s->framing, &why) != HTTP1_DONE)
		return fail_malformed(err, &why);
	return keep_head(s, err);
}

int stream_begin(struct conn *conn, unsigned to, struct client_stream **ret, struct err *err)
{
	auto_call(client_close) struct client_stream *s = calloc(1, sizeof(*s));

	if (!s) {
		conn_fini(conn);
		return err_sys(err, ENOMEM, "response");
	}
	s->conn = *conn;
	*conn = (struct conn){ .fd = -1 };
	do
		if (read_head(s, to, err) < 0)
			return -1;
	while (s->framing.interim);
	s->left = s->framing.body == HTTP1_BODY_UNTIL_CLOSE ? UINT64_MAX : s->framing.length;
	s->over = s->framing.body == HTTP1_BODY_NONE || s->framing.body == HTTP1_BODY_TUNNEL;
	*ret = steal_ptr(&s);
	return 0;
}

void client_close(struct client_stream *s)
{
	if (!s)
		return;
	conn_fini(&s->conn);
	free(s->head_text);
	free(s->lines);
	free(s);
}

int client_status(const struct client_stream *s)
{
	return (int)s->head.status;
}

const char *client_header(const struct client_stream *s, const char *name)
{
	struct http1_text wanted = { name, strlen(name) };

	for (uint32_t i = 0; i < s->head.nheaders; i++)
		if (http1_text_same(http1_head_text(&s->head, s->headers[i].name), wanted))
			return s->head_text + s->headers[i].value.at;
	return NULL;
}

/* ---- the body -------------------------------------------------------------------------------- */

/* Takes the data out of chunks in the buffer. */
static ssize_t read_chunks(struct client_stream *s, char *buf, size_t size, struct err *err)
{
	struct conn *c = &s->conn;
	struct http1_error why;
	size_t used, data = 0;

	while (!data && !s->over) {
		ssize_t n = c->at < c->len ? 1 : conn_fill(c, true);
		size_t len = c->len - c->at;
		enum http1_result r;

		if (n <= 0)
			return problem_broken(n, err);
		r = http1_chunked_read(&s->chunked, c->buf + c->at, len < size ? len : size, buf,
				       &used, &data, &why);
		if (r == HTTP1_BAD)
			return fail_malformed(err, &why);
		c->at += used;
		s->over = r == HTTP1_DONE;
	}
	return (ssize_t)data;
}

static void note_read(struct client_stream *s, size_t n)
{
	if (s->framing.body == HTTP1_BODY_CHUNKED)
		http1_chunked_skip(&s->chunked, n);
	else if (s->framing.body == HTTP1_BODY_LENGTH)
		s->over = !(s->left -= n);
}

/* What the buffer does not have of a body, or of a chunk, is read without a copy. */
ssize_t client_read(struct client_stream *s, void *buf, size_t size, struct err *err)
{
	uint64_t left = s->left;
	ssize_t n;

	if (s->over || !size)
		return 0;
	if (s->framing.body == HTTP1_BODY_CHUNKED &&
	    (s->conn.at < s->conn.len || !http1_chunked_in_data(&s->chunked, &left)))
		return read_chunks(s, buf, size, err);
	n = conn_read(&s->conn, buf, size < left ? size : (size_t)left);
	if (n == 0 && s->framing.body == HTTP1_BODY_UNTIL_CLOSE) {
		s->over = true;
		return 0;
	}
	if (n <= 0)
		return problem_broken(n, err);
	note_read(s, (size_t)n);
	return n;
}

int stream_all(struct client_stream *s, char **ret, size_t *ret_len, struct err *err)
{
	auto_free char *buf = NULL;
	size_t len = 0, capacity = 0;
	ssize_t n;

	do {
		if (vec_reserve(&buf, &capacity, len + READ_MIN) < 0)
			return err_sys(err, ENOMEM, "response");
		n = client_read(s, buf + len, capacity - len - 1, err);
		if (n < 0)
			return -1;
		len += (size_t)n;
		if (len > ANSWER_MAX)
			return err_set(err, ERR_LIMIT, "the response is longer than 64 MiB");
	} while (n);
	buf[len] = '\0';
	*ret = steal_ptr(&buf);
	*ret_len = len;
	return 0;
}
