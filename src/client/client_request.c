/* SPDX-License-Identifier: Apache-2.0 */
/* A request, from its parts to the head of the response. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/internal.h"

#ifndef LODGE_VERSION
#define LODGE_VERSION "0.1.0"
#endif

/* A response may take as long as a command. The response to an upgrade comes at once, so it has a
 * timeout. */
enum { PIECE = 64 << 10, UPGRADE_MS = 10000 };

/* The body of a request. */
struct body {
	enum body_kind kind;
	char *text; /* serialized JSON; owned */
	const char *bytes; /* NULL: from fd */
	uint64_t length;
	const char *type;
};

static int prepare_body(const struct client_request *rq, struct body *ret, struct err *err)
{
	struct stat st;
	off_t at;

	*ret = (struct body){ .kind = BODY_NONE, .type = rq->type };
	if (rq->body) {
		ret->text = json_dumps(rq->body, JSON_COMPACT | JSON_ENCODE_ANY);
		if (!ret->text)
			return err_sys(err, ENOMEM, "request");
		ret->kind = BODY_LENGTH;
		ret->bytes = ret->text;
		ret->length = strlen(ret->text);
		ret->type = rq->type ? rq->type : "application/json";
	} else if (rq->bytes) {
		ret->kind = BODY_LENGTH;
		ret->bytes = rq->bytes;
		ret->length = rq->nbytes;
		ret->type = rq->type ? rq->type : "application/octet-stream";
	} else if (rq->has_body_fd) {
		if (fstat(rq->body_fd, &st) < 0)
			return err_sys(err, errno, "read the request body");
		at = S_ISREG(st.st_mode) ? lseek(rq->body_fd, 0, SEEK_CUR) : -1;
		ret->kind = at >= 0 ? BODY_LENGTH : BODY_CHUNKED;
		ret->length = at >= 0 && at < st.st_size ? (uint64_t)(st.st_size - at) : 0;
		ret->type = rq->type ? rq->type : "application/octet-stream";
	} else if (strcmp(rq->method, "POST") == 0 || strcmp(rq->method, "PUT") == 0 ||
		   strcmp(rq->method, "PATCH") == 0) {
		ret->kind = BODY_LENGTH;
	}
	return 0;
}

/* ---- the head -------------------------------------------------------------------------------- */

/* A line break in a header line would start another header. */
static int check_line(const char *s, bool spaces, struct err *err)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f || (*s == ' ' && !spaces))
			return err_set(err, ERR_INVALID, "request: invalid character in a header");
	return 0;
}

static int check_words(const struct client_request *rq, struct err *err)
{
	if (check_line(rq->method, false, err) < 0 || check_line(rq->path, false, err) < 0 ||
	    (rq->accept && check_line(rq->accept, true, err) < 0) ||
	    (rq->type && check_line(rq->type, true, err) < 0))
		return -1;
	for (size_t i = 0; rq->headers && rq->headers[i]; i++)
		if (check_line(rq->headers[i], true, err) < 0)
			return -1;
	return 0;
}

static int make_head(const struct client *c, const struct client_request *rq, const struct body *b,
		     const char *upgrade, char **ret, size_t *ret_len, struct err *err)
{
	FILE *f = open_memstream(ret, ret_len);

	if (!f)
		return err_sys(err, ENOMEM, "request");
	fprintf(f, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: lodge/%s\r\n", rq->method, rq->path,
		c->authority, LODGE_VERSION);
	if (c->key)
		fprintf(f, "Authorization: Bearer %s\r\n", c->key);
	fprintf(f, "Accept: %s\r\n", rq->accept ? rq->accept : "*/*");
	for (size_t i = 0; rq->headers && rq->headers[i]; i++)
		fprintf(f, "%s\r\n", rq->headers[i]);
	if (b->type)
		fprintf(f, "Content-Type: %s\r\n", b->type);
	if (b->kind == BODY_LENGTH)
		fprintf(f, "Content-Length: %llu\r\n", (unsigned long long)b->length);
	if (b->kind == BODY_CHUNKED)
		fputs("Transfer-Encoding: chunked\r\n", f);
	fputs(upgrade ? upgrade : "Connection: close\r\n", f);
	fputs("\r\n", f);
	return fclose(f) == 0 ? 0 : err_sys(err, ENOMEM, "request");
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Sends one piece, chunked if needed; buf has space for two more bytes. 0 or -errno. */
static int send_piece(struct conn *conn, const struct body *b, char *buf, size_t n)
{
	char size[24];
	int len = snprintf(size, sizeof(size), "%zx\r\n", n), r;

	if (b->kind == BODY_LENGTH)
		return conn_write(conn, buf, n);
	buf[n] = '\r';
	buf[n + 1] = '\n';
	r = conn_write(conn, size, (size_t)len);
	return r < 0 ? r : conn_write(conn, buf, n + 2);
}

/* Returns bytes, 0 at the end, or -1 with err. */
static ssize_t read_piece(const struct client_request *rq, const struct body *b, uint64_t sent,
			  char *buf, struct err *err)
{
	bool known = b->kind == BODY_LENGTH;
	size_t want = known && b->length - sent < PIECE ? (size_t)(b->length - sent) : PIECE;
	ssize_t n;

	if (!want)
		return 0;
	do
		n = read(rq->body_fd, buf, want);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, errno, "read the request body");
	return !n && known ? err_set(err, ERR_CONFLICT, "the file was truncated during the upload")
			   : n;
}

/* 0: sent completely, or a response came first; -errno of the socket; 1: err is set. */
static int send_fd(struct conn *conn, const struct client_request *rq, const struct body *b,
		   struct err *err)
{
	auto_free char *buf = malloc(PIECE + 2);
	uint64_t sent = 0;
	ssize_t n = -1;
	int r;

	if (!buf)
		err_sys(err, ENOMEM, "request");
	while (buf && (n = read_piece(rq, b, sent, buf, err)) > 0) {
		if (conn_answered(conn))
			return 0;
		r = send_piece(conn, b, buf, (size_t)n);
		if (r < 0)
			return r;
		sent += (uint64_t)n;
		if (rq->sent)
			rq->sent(rq->arg, sent);
	}
	if (n < 0 || (rq->whole && rq->whole(rq->arg, err) < 0))
		return 1;
	return b->kind == BODY_CHUNKED ? conn_write(conn, "0\r\n\r\n", 5) : 0;
}

static int send_all(struct conn *conn, const struct client_request *rq, const struct body *b,
		    const char *head, size_t len, struct err *err)
{
	int r = conn_write(conn, head, len);

	if (r < 0 || b->kind == BODY_NONE)
		return r;
	if (b->bytes)
		return conn_write(conn, b->bytes, (size_t)b->length);
	return rq->has_body_fd ? send_fd(conn, rq, b, err) : 0;
}

/* A server may reject a body before it is complete and close the connection. Its response then
 * tells more than the failed write. */
static int exchange(struct client *c, const struct client_request *rq, const struct body *b,
		    const char *head, size_t len, int limit_ms, struct client_stream **ret,
		    struct err *err)
{
	struct conn conn = { .fd = -1 };
	int r;

	if (conn_open(c, &conn, err) < 0)
		return -1;
	conn.limit_ms = limit_ms;
	r = send_all(&conn, rq, b, head, len, err);
	if (r > 0) {
		conn_fini(&conn);
		return -1;
	}
	if (stream_begin(&conn, strcmp(rq->method, "HEAD") == 0, ret, err) == 0) {
		(*ret)->conn.limit_ms = c->limit_ms;
		return 0;
	}
	return r < 0 ? problem_broken(r, err) : -1;
}

int request_send(struct client *c, const struct client_request *rq, const char *upgrade,
		 struct client_stream **ret, struct err *err)
{
	auto_free char *head = NULL;
	struct body b;
	size_t len = 0;
	int r;

	if (check_words(rq, err) < 0 || prepare_body(rq, &b, err) < 0)
		return -1;
	r = make_head(c, rq, &b, upgrade, &head, &len, err);
	if (r == 0)
		r = exchange(c, rq, &b, head, len, upgrade ? UPGRADE_MS : c->limit_ms, ret, err);
	if (head)
		explicit_bzero(head, len); /* it contains the key */
	free(b.text);
	return r;
}

int client_open(struct client *c, const struct client_request *rq, struct client_stream **ret,
		struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;

	if (request_send(c, rq, NULL, &s, err) < 0 || !s)
		return -1;
	if (s->head.status >= 400)
		return problem_read(c, s, err);
	if (s->head.status < 200 || s->head.status >= 300)
		return err_set(err, ERR_UNAVAILABLE,
			       "%.120s: unexpected status %d; is this lodged?", c->url,
			       s->head.status);
	*ret = steal_ptr(&s);
	return 0;
}
