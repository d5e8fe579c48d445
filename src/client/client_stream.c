/* SPDX-License-Identifier: Apache-2.0 */
/* A response as a stream: its head, then its body in any encoding. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/vec.h"
#include "client/internal.h"

enum { LINE_MAX_CHUNK = 1024 };

static int fail_malformed(struct err *err, const char *why)
{
	return err_set(err, ERR_UNAVAILABLE, "malformed response: %s", why);
}

/* ---- the head: the parser is strict, ambiguous ones are errors ------------------------------- */

/* The next line without its line end; NULL after the last. */
static char *next_head_line(char **at, const char *end)
{
	char *line = *at, *lf = memchr(line, '\n', (size_t)(end - line));

	if (!lf)
		return NULL;
	*at = lf + 1;
	if (lf > line && lf[-1] == '\r')
		lf--;
	*lf = '\0';
	return line;
}

/* HTTP/1.1 200 OK */
static int parse_status(const char *line, struct head *h, struct err *err)
{
	const char *p = line + 9;

	if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') ||
	    line[8] != ' ')
		return fail_malformed(err, "it does not begin with HTTP/1.1");
	for (int i = 0; i < 3; i++) {
		if (p[i] < '0' || p[i] > '9')
			return fail_malformed(err, "it has no status");
		h->status = h->status * 10 + (p[i] - '0');
	}
	if ((p[3] && p[3] != ' ') || h->status < 100 || h->status > 599)
		return fail_malformed(err, "it has no status");
	return 0;
}

static bool is_token(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s > '~' || strchr("()<>@,;:\\\"/[]?={}", *s))
			return false;
	return true;
}

static int parse_header(char *line, struct head *h, struct err *err)
{
	char *colon = strchr(line, ':'), *end;

	if (!colon || colon == line)
		return fail_malformed(err, "a line of its head has no name");
	*colon++ = '\0';
	if (!is_token(line))
		return fail_malformed(err, "a line of its head has no good name");
	if (h->nheaders == HEADERS_MAX)
		return fail_malformed(err, "its head has too many lines");
	colon += strspn(colon, " \t");
	end = colon + strlen(colon);
	while (end > colon && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	for (const char *p = colon; *p; p++)
		if ((unsigned char)*p < ' ' && *p != '\t')
			return fail_malformed(err, "its head has control characters");
	h->headers[h->nheaders].name = line;
	h->headers[h->nheaders++].value = colon;
	return 0;
}

static int parse_length(const char *text, struct head *h, struct err *err)
{
	size_t len = strlen(text);
	uint64_t n = strtoull(text, NULL, 10);

	if (!len || len > 18 || strspn(text, "0123456789") != len)
		return fail_malformed(err, "its Content-Length is none");
	if (h->kind == BODY_CHUNKED || (h->kind == BODY_LENGTH && h->length != n))
		return fail_malformed(err, "it has two lengths");
	h->kind = BODY_LENGTH;
	h->length = n;
	return 0;
}

static int parse_body_kind(struct head *h, bool bodiless, struct err *err)
{
	h->kind = BODY_REST;
	for (size_t i = 0; i < h->nheaders; i++) {
		const char *name = h->headers[i].name, *value = h->headers[i].value;

		if (strcasecmp(name, "Content-Length") == 0) {
			if (parse_length(value, h, err) < 0)
				return -1;
		} else if (strcasecmp(name, "Transfer-Encoding") == 0) {
			if (strcasecmp(value, "chunked") != 0)
				return fail_malformed(err, "its Transfer-Encoding is not known");
			if (h->kind != BODY_REST)
				return fail_malformed(err, "it has two lengths");
			h->kind = BODY_CHUNKED;
		}
	}
	if (bodiless || h->status < 200 || h->status == 204 || h->status == 304)
		h->kind = BODY_NONE;
	return 0;
}

static int parse_head(char *text, size_t len, bool bodiless, struct head *ret, struct err *err)
{
	char *at = text, *end = text + len, *line;

	ret->status = 0;
	ret->nheaders = 0;
	ret->length = 0;
	if (memchr(text, '\0', len))
		return fail_malformed(err, "its head has control characters");
	line = next_head_line(&at, end);
	if (!line || parse_status(line, ret, err) < 0)
		return line ? -1 : fail_malformed(err, "it has no first line");
	while ((line = next_head_line(&at, end)) && *line)
		if (parse_header(line, ret, err) < 0)
			return -1;
	if (!line || at != end)
		return fail_malformed(err, "its head has no end");
	return parse_body_kind(ret, bodiless, err);
}

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
	return parse_head(s->head_text, len, bodiless, &s->head, err);
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
	for (size_t i = 0; i < s->head.nheaders; i++)
		if (strcasecmp(s->head.headers[i].name, name) == 0)
			return s->head.headers[i].value;
	return NULL;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static int fail_chunk(struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "malformed response");
}

/* Reads one line without its line end. */
static int read_line(struct client_stream *s, char line[LINE_MAX_CHUNK], struct err *err)
{
	size_t len = 0;
	ssize_t n;
	char c;

	while ((n = conn_pending(&s->conn) ? 1 : conn_fill(&s->conn, true)) > 0) {
		if (conn_read(&s->conn, &c, 1, true) != 1)
			return fail_chunk(err);
		if (c == '\n')
			break;
		if (len == LINE_MAX_CHUNK - 1)
			return fail_chunk(err);
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
		return fail_chunk(err);
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
				return fail_chunk(err);
			s->chunk = CHUNK_SIZE_LINE;
		} else if (!n) {
			s->chunk = CHUNK_OVER;
		} else if (++trailers == HEADERS_MAX) {
			return fail_chunk(err);
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
