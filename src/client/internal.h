/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the client have from each other. */
#ifndef LODGE_CLIENT_INTERNAL_H
#define LODGE_CLIENT_INTERNAL_H

#include <openssl/types.h>

#include "base/auto.h"
#include "client/client.h"

enum {
	HEAD_MAX = 64 << 10, /* bytes of an answer's head */
	HEADERS_MAX = 200,
	ANSWER_MAX = 64 << 20, /* bytes of an answer, line or event that is kept in memory */
	CONN_BUF = HEAD_MAX,
};

struct client {
	char *url, *key;
	char *host, *port; /* NULL: by `path` */
	char *path; /* of the unix socket */
	char *authority; /* what Host says */
	SSL_CTX *tls; /* NULL: plain */
	int limit_ms; /* as conn's */
};
DEFINE_AUTO(struct client *, client_free);

/* ---- conn.c: bytes to and from one socket ---------------------------------------------------- */

struct conn {
	int fd; /* non-blocking; -1: none */
	SSL *ssl;
	bool sent; /* something was */
	int limit_ms; /* of each wait; 0: as long as it takes */
	size_t at, len; /* of what came and was not taken */
	char *buf; /* CONN_BUF bytes */
};

int conn_open(const struct client *c, struct conn *ret, struct err *err);
int conn_wrap(int fd, struct conn *ret, struct err *err); /* takes fd, also if it fails */
void conn_fini(struct conn *c);
/* All of it; 0 or -errno. */
int conn_write(struct conn *c, const void *data, size_t len);
/* More into the buffer, which is not full. Bytes; 0: the end; -errno, -EAGAIN only if !wait. */
ssize_t conn_fill(struct conn *c, bool wait);
/* From the buffer, or, if it is empty, as conn_fill(). */
ssize_t conn_read(struct conn *c, void *buf, size_t size, bool wait);
bool conn_pending(const struct conn *c);
/* Whether an answer came already, as far as can be told without reading. */
bool conn_answered(const struct conn *c);

/* ---- tls.c ----------------------------------------------------------------------------------- */

int tls_context(SSL_CTX **ret, struct err *err);
void tls_context_free(SSL_CTX *ctx); /* NULL is allowed */
/* A session over a connected socket, its peer's certificate checked. */
int tls_open(SSL_CTX *ctx, int fd, char *host, SSL **ret, struct err *err);
void tls_free(SSL *ssl); /* NULL is allowed */
/* Bytes, 0 for the end, -errno; -EAGAIN with what to wait for. */
ssize_t tls_read(SSL *ssl, void *buf, size_t size, short *ret_wait);
ssize_t tls_write(SSL *ssl, const void *data, size_t len, short *ret_wait);
bool tls_pending(SSL *ssl);

/* ---- head.c: an answer's head ---------------------------------------------------------------- */

enum body_kind { BODY_NONE, BODY_LENGTH, BODY_CHUNKED, BODY_REST };

struct head {
	int status;
	enum body_kind kind;
	uint64_t length;
	size_t nheaders;
	struct {
		const char *name, *value; /* into the text */
	} headers[HEADERS_MAX];
};

/* Takes the text apart in place; it ends with an empty line, and text[len] is writable. */
int head_parse(char *text, size_t len, bool bodiless, struct head *ret, struct err *err);
const char *head_get(const struct head *h, const char *name);

/* ---- stream.c: an answer --------------------------------------------------------------------- */

enum chunk_at { CHUNK_SIZE_LINE, CHUNK_DATA, CHUNK_END_LINE, CHUNK_TRAILER, CHUNK_OVER };

struct client_stream {
	struct conn conn;
	struct head head;
	char *head_text;
	uint64_t left; /* of the body or the chunk */
	enum chunk_at chunk;
	bool over;
	/* lines.c */
	char *lines;
	size_t at, len, room;
};
DEFINE_AUTO(struct client_stream *, client_close);

/* Reads the head of the answer; takes *conn over. Answers of 1xx but 101 are passed over. */
int stream_begin(struct conn *conn, bool bodiless, struct client_stream **ret, struct err *err);
/* All that is left, at most ANSWER_MAX; with a NUL behind it. */
int stream_all(struct client_stream *s, char **ret, size_t *ret_len, struct err *err);

/* ---- ws.c ------------------------------------------------------------------------------------ */

/* Over an answer whose head was read; takes it over. NULL: no memory. */
struct client_ws *client_ws_wrap(struct client_stream *s);

/* ---- request.c ------------------------------------------------------------------------------- */

/* Sends the question and reads the head of the answer, whatever its status is. */
int request_send(struct client *c, const struct client_request *rq, const char *upgrade,
		 struct client_stream **ret, struct err *err);

/* ---- problem.c ------------------------------------------------------------------------------- */

/* Reads the rest of an answer of 400 or more; returns -1. */
int problem_read(const struct client *c, struct client_stream *s, struct err *err);
/* The same of an answer that has been read. */
int problem_set(const struct client *c, int status, const json_t *answer, struct err *err);
/* The connection broke: -errno, or 0 for its end. */
int problem_broken(ssize_t n, struct err *err);

#endif
