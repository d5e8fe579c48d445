/* SPDX-License-Identifier: Apache-2.0 */
/* A request, from its parts to the head of the response. */
#include "client/client_request.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "client/client_error.h"
#include "http1/http1_writer.h"

#ifndef LODGE_VERSION
#define LODGE_VERSION "0.1.0"
#endif

/* A response may take as long as a command. The response to an upgrade comes at once, so it has a
 * timeout. */
enum { PIECE = 64 << 10, UPGRADE_MS = 10000 };

/* The body of a request. */
struct body {
	struct http1_framing framing;
	char *text; /* serialized JSON; owned */
	const char *bytes; /* NULL: from fd */
	const char *type;
};

static void set_length(struct body *b, uint64_t length)
{
	b->framing = (struct http1_framing){ .body = length ? HTTP1_BODY_LENGTH : HTTP1_BODY_NONE,
					     .has_length = true,
					     .length = length };
}

static int prepare_file(int fd, struct body *b, struct err *err)
{
	struct stat st;
	off_t at;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "read the request body");
	at = S_ISREG(st.st_mode) ? lseek(fd, 0, SEEK_CUR) : -1;
	if (at < 0)
		b->framing.body = HTTP1_BODY_CHUNKED;
	else
		set_length(b, at < st.st_size ? (uint64_t)(st.st_size - at) : 0);
	return 0;
}

static int prepare_body(const struct client_request *rq, struct body *ret, struct err *err)
{
	*ret = (struct body){ .type = rq->type };
	if (rq->body) {
		ret->bytes = ret->text = json_dumps(rq->body, JSON_COMPACT | JSON_ENCODE_ANY);
		if (!ret->text)
			return err_sys(err, ENOMEM, "request");
		set_length(ret, strlen(ret->text));
		ret->type = rq->type ? rq->type : "application/json";
	} else if (rq->bytes || rq->has_body_fd) {
		ret->bytes = rq->bytes;
		ret->type = rq->type ? rq->type : "application/octet-stream";
		if (!rq->bytes)
			return prepare_file(rq->body_fd, ret, err);
		set_length(ret, rq->nbytes);
	} else if (strcmp(rq->method, "POST") == 0 || strcmp(rq->method, "PUT") == 0 ||
		   strcmp(rq->method, "PATCH") == 0) {
		set_length(ret, 0);
	}
	return 0;
}

/* ---- the head -------------------------------------------------------------------------------- */

static int make_head(const struct client *c, const struct client_request *rq, const struct body *b,
		     bool upgrade, char *to, size_t *ret_len, struct err *err)
{
	struct http1_writer w;

	http1_writer_init(&w, to, HEAD_MAX);
	http1_writer_request(&w, rq->method, (struct http1_text){ rq->path, strlen(rq->path) });
	http1_writer_header(&w, "Host", c->authority);
	http1_writer_header(&w, "User-Agent", "lodge/" LODGE_VERSION);
	if (c->authorization)
		http1_writer_header(&w, "Authorization", c->authorization);
	http1_writer_header(&w, "Accept", rq->accept ? rq->accept : "*/*");
	for (size_t i = 0; rq->headers && rq->headers[i]; i += 2)
		http1_writer_header(&w, rq->headers[i], rq->headers[i + 1]);
	if (b->type)
		http1_writer_header(&w, "Content-Type", b->type);
	http1_writer_framing(&w, &b->framing);
	http1_writer_header(&w, "Connection", upgrade ? "Upgrade" : "close");
	if (http1_writer_end(&w, ret_len) == 0)
		return 0;
	explicit_bzero(to, w.len); /* it contains the key */
	return err_set(err, ERR_INVALID, "request: %s", w.why);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Sends n bytes at buf + HTTP1_CHUNK_HEAD, as a chunk if needed. 0 or -errno. */
static int send_piece(struct conn *conn, const struct body *b, char *buf, size_t n)
{
	static const size_t tail = sizeof(HTTP1_CHUNK_TAIL) - 1;
	char head[HTTP1_CHUNK_HEAD], *data = buf + HTTP1_CHUNK_HEAD;
	size_t len;

	if (b->framing.body != HTTP1_BODY_CHUNKED)
		return conn_write(conn, data, n);
	len = http1_chunked_head(n, head);
	memcpy(data - len, head, len);
	memcpy(data + n, HTTP1_CHUNK_TAIL, tail);
	return conn_write(conn, data - len, len + n + tail);
}

/* Returns bytes, 0 at the end, or -1 with err. */
static ssize_t read_piece(const struct client_request *rq, const struct body *b, uint64_t sent,
			  char *buf, struct err *err)
{
	bool known = b->framing.has_length;
	uint64_t left = b->framing.length - sent;
	size_t want = known && left < PIECE ? (size_t)left : PIECE;
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
	auto_free char *buf = malloc(HTTP1_CHUNK_HEAD + PIECE + sizeof(HTTP1_CHUNK_TAIL));
	uint64_t sent = 0;
	ssize_t n = -1;
	int r;

	if (!buf)
		err_sys(err, ENOMEM, "request");
	while (buf && (n = read_piece(rq, b, sent, buf + HTTP1_CHUNK_HEAD, err)) > 0) {
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
	return b->framing.body == HTTP1_BODY_CHUNKED
		       ? conn_write(conn, HTTP1_LAST_CHUNK, sizeof(HTTP1_LAST_CHUNK) - 1)
		       : 0;
}

static int send_all(struct conn *conn, const struct client_request *rq, const struct body *b,
		    const char *head, size_t len, struct err *err)
{
	int r = conn_write(conn, head, len);

	if (r < 0)
		return r;
	if (b->bytes)
		return conn_write(conn, b->bytes, (size_t)b->framing.length);
	return rq->has_body_fd ? send_fd(conn, rq, b, err) : 0;
}

/* A server may reject a body before it is complete and close the connection. Its response then
 * tells more than the failed write. */
static int exchange(struct client *c, const struct client_request *rq, const struct body *b,
		    const char *head, size_t len, bool upgrade, struct client_stream **ret,
		    struct err *err)
{
	unsigned to = (strcmp(rq->method, "HEAD") == 0 ? HTTP1_TO_HEAD : 0u) |
		      (upgrade ? HTTP1_TO_UPGRADE : 0u);
	struct conn conn = { .fd = -1 };
	int r;

	if (conn_open(c, &conn, err) < 0)
		return -1;
	conn.limit_ms = upgrade ? UPGRADE_MS : c->limit_ms;
	r = send_all(&conn, rq, b, head, len, err);
	if (r > 0) {
		conn_fini(&conn);
		return -1;
	}
	if (stream_begin(&conn, to, ret, err) == 0) {
		(*ret)->conn.limit_ms = c->limit_ms;
		return 0;
	}
	return r < 0 ? problem_broken(r, err) : -1;
}

int request_send(struct client *c, const struct client_request *rq, bool upgrade,
		 struct client_stream **ret, struct err *err)
{
	auto_free char *head = malloc(HEAD_MAX);
	struct body b;
	size_t len = 0;
	int r;

	if (!head)
		return err_sys(err, ENOMEM, "request");
	if (prepare_body(rq, &b, err) < 0)
		return -1;
	r = make_head(c, rq, &b, upgrade, head, &len, err);
	if (r == 0)
		r = exchange(c, rq, &b, head, len, upgrade, ret, err);
	explicit_bzero(head, len);
	free(b.text);
	return r;
}

int client_open(struct client *c, const struct client_request *rq, struct client_stream **ret,
		struct err *err)
{
	auto_call(client_close) struct client_stream *s = NULL;

	if (request_send(c, rq, false, &s, err) < 0 || !s)
		return -1;
	if (client_status(s) >= 400)
		return problem_read(c, s, err);
	if (client_status(s) >= 300)
		return err_set(err, ERR_UNAVAILABLE,
			       "%.120s: unexpected status %d; is this lodged?", c->url,
			       client_status(s));
	*ret = steal_ptr(&s);
	return 0;
}
