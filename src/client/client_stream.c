/* SPDX-License-Identifier: Apache-2.0 */
/* A response as a stream: its head, then its body in any encoding. */
#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "client/internal.h"

enum { LINE_MAX_CHUNK = 1024 };

static int fail_malformed(struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "malformed response");
}

/* ---- the head -------------------------------------------------------------------------------- */

/* The length of the head including the empty line; 0 if it is incomplete. */
static size_t head_length(const char *text, size_t len)
{
	const char *end = text + len, *lf = text;

	while ((lf = memchr(lf, '\n', (size_t)(end - lf)))) {
		lf++;
		if (lf < end && *lf == '\n')
			return (size_t)(lf - text) + 1;
		if (lf + 1 < end && lf[0] == '\r' && lf[1] == '\n')
			return (size_t)(lf - text) + 2;
	}
	return 0;
}

static int read_head(struct client_stream *s, bool bodiless, struct err *err)
{
	struct conn *c = &s->conn;
	size_t len;
	ssize_t n;

	while (!(len = head_length(c->buf + c->at, c->len - c->at))) {
		if (c->len - c->at == CONN_BUF)
			return err_set(err, ERR_UNAVAILABLE,
				       "the head of the response is too long");
		n = conn_fill(c, true);
		if (n <= 0)
			return problem_broken(n, err);
	}
	free(s->head_text);
	s->head_text = malloc(len + 1);
	if (!s->head_text)
		return err_sys(err, ENOMEM, "response");
	memcpy(s->head_text, c->buf + c->at, len);
	c->at += len;
	return head_parse(s->head_text, len, bodiless, &s->head, err);
}

int stream_begin(struct conn *conn, bool bodiless, struct client_stream **ret, struct err *err)
{
	auto_call(client_close) struct client_stream *s = calloc(1, sizeof(*s));

	if (!s) {
		conn_fini(conn);
		return err_sys(err, ENOMEM, "response");
	}
	s->conn = *conn;
	*conn = (struct conn){ .fd = -1 };
	do
		if (read_head(s, bodiless, err) < 0)
			return -1;
	while (s->head.status < 200 && s->head.status != 101);
	s->left = s->head.kind == BODY_LENGTH ? s->head.length : 0;
	s->over = s->head.kind == BODY_NONE || (s->head.kind == BODY_LENGTH && !s->left);
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
	return s->head.status;
}

const char *client_header(const struct client_stream *s, const char *name)
{
	return head_get(&s->head, name);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Reads one line without its line end. */
static int read_line(struct client_stream *s, char line[LINE_MAX_CHUNK], struct err *err)
{
	size_t len = 0;
	ssize_t n;
	char c;

	while ((n = conn_pending(&s->conn) ? 1 : conn_fill(&s->conn, true)) > 0) {
		if (conn_read(&s->conn, &c, 1, true) != 1)
			return fail_malformed(err);
		if (c == '\n')
			break;
		if (len == LINE_MAX_CHUNK - 1)
			return fail_malformed(err);
		line[len++] = c;
	}
	if (n <= 0)
		return problem_broken(n, err);
	if (len && line[len - 1] == '\r')
		len--;
	line[len] = '\0';
	return (int)len;
}

/* 1a;name=value */
static int parse_chunk_size(struct client_stream *s, const char *line, struct err *err)
{
	size_t digits = strspn(line, "0123456789abcdefABCDEF");

	if (!digits || digits > 15 || (line[digits] && !strchr("; \t", line[digits])))
		return fail_malformed(err);
	s->left = strtoull(line, NULL, 16);
	s->chunk = s->left ? CHUNK_DATA : CHUNK_TRAILER;
	return 0;
}

/* Advances to the next data or to the end. */
static int next_chunk(struct client_stream *s, struct err *err)
{
	char line[LINE_MAX_CHUNK];
	int n, trailers = 0;

	while (s->chunk != CHUNK_DATA && s->chunk != CHUNK_OVER) {
		n = read_line(s, line, err);
		if (n < 0)
			return -1;
		if (s->chunk == CHUNK_SIZE_LINE) {
			if (parse_chunk_size(s, line, err) < 0)
				return -1;
		} else if (s->chunk == CHUNK_END_LINE) {
			if (n)
				return fail_malformed(err);
			s->chunk = CHUNK_SIZE_LINE;
		} else if (!n) {
			s->chunk = CHUNK_OVER;
		} else if (++trailers == HEADERS_MAX) {
			return fail_malformed(err);
		}
	}
	s->over = s->chunk == CHUNK_OVER;
	return 0;
}

/* ---- the body -------------------------------------------------------------------------------- */

static void note_read(struct client_stream *s, size_t n)
{
	if (s->head.kind == BODY_REST)
		return;
	s->left -= n;
	if (s->left)
		return;
	if (s->head.kind == BODY_LENGTH)
		s->over = true;
	else
		s->chunk = CHUNK_END_LINE;
}

ssize_t client_read(struct client_stream *s, void *buf, size_t size, struct err *err)
{
	ssize_t n;

	if (s->head.kind == BODY_CHUNKED && !s->over && next_chunk(s, err) < 0)
		return -1;
	if (s->over || !size)
		return 0;
	if (s->head.kind != BODY_REST && size > s->left)
		size = (size_t)s->left;
	n = conn_read(&s->conn, buf, size, true);
	if (n == 0 && s->head.kind == BODY_REST) {
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
