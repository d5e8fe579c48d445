/* SPDX-License-Identifier: Apache-2.0 */
/* Shared declarations of the client. */
#ifndef LODGE_CLIENT_INTERNAL_H
#define LODGE_CLIENT_INTERNAL_H

#include <openssl/types.h>

#include "base/auto.h"
#include "client/client.h"

enum {
	HEAD_MAX = 64 << 10, /* bytes of the head of a response */
	HEADERS_MAX = 200,
	READ_MIN = 4096, /* free bytes of a buffer before a read */
	ANSWER_MAX = 64 << 20, /* bytes of a response, line or event in memory */
	CONN_BUF = HEAD_MAX,
};

struct client {
	char *url, *key;
	char *host, *port; /* NULL: connect to `path` */
	char *path; /* of the unix socket */
	char *authority; /* the Host header */
	SSL_CTX *tls; /* NULL: no TLS */
	int limit_ms; /* as conn's */
};
DEFINE_AUTO(struct client *, client_free);
DEFINE_AUTO(json_t *, json_decref);

/* ---- conn.c: bytes to and from one socket ---------------------------------------------------- */

struct conn {
	int fd; /* non-blocking; -1: none */
	SSL *ssl;
	bool sent; /* something was sent */
	int limit_ms; /* timeout of each wait; 0: none */
	size_t at, len; /* unread bytes in the buffer */
	char *buf; /* CONN_BUF bytes */
};

int conn_open(const struct client *c, struct conn *ret, struct err *err);
int conn_wrap(int fd, struct conn *ret, struct err *err); /* owns fd, also on failure */
void conn_fini(struct conn *c);
/* Writes all bytes; 0 or -errno. */
int conn_write(struct conn *c, const void *data, size_t len);
/* Reads into the buffer, which must not be full. Returns bytes, 0 at the end, or -errno; -EAGAIN
 * only without `wait`. */
ssize_t conn_fill(struct conn *c, bool wait);
/* Reads from the buffer or, if it is empty, like conn_fill(). */
ssize_t conn_read(struct conn *c, void *buf, size_t size, bool wait);
bool conn_pending(const struct conn *c);
/* True if a response has started to arrive, as far as visible without reading. */
bool conn_answered(const struct conn *c);

/* ---- tls.c ----------------------------------------------------------------------------------- */

int tls_context(SSL_CTX **ret, struct err *err);
void tls_context_free(SSL_CTX *ctx); /* accepts NULL */
/* Opens a TLS session over a connected socket and verifies the peer's certificate. */
int tls_open(SSL_CTX *ctx, int fd, char *host, SSL **ret, struct err *err);
void tls_free(SSL *ssl); /* accepts NULL */
/* Returns bytes, 0 at the end, or -errno; with -EAGAIN, *ret_wait is what to poll for. */
ssize_t tls_read(SSL *ssl, void *buf, size_t size, short *ret_wait);
ssize_t tls_write(SSL *ssl, const void *data, size_t len, short *ret_wait);
bool tls_pending(SSL *ssl);

/* ---- stream.c: an answer --------------------------------------------------------------------- */

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
	size_t at, len, capacity;
};
DEFINE_AUTO(struct client_stream *, client_close);

/* Reads the head of the response and takes ownership of *conn. Skips 1xx responses except 101. */
int stream_begin(struct conn *conn, bool bodiless, struct client_stream **ret, struct err *err);
/* Reads the rest, at most ANSWER_MAX bytes, and appends a NUL. */
int stream_all(struct client_stream *s, char **ret, size_t *ret_len, struct err *err);

/* ---- ws.c ------------------------------------------------------------------------------------ */

/* Wraps a response whose head has been read and takes ownership of it. NULL without memory. */
struct client_ws *client_ws_wrap(struct client_stream *s);

/* ---- request.c ------------------------------------------------------------------------------- */

/* Sends the request and reads the head of the response, whatever its status. */
int request_send(struct client *c, const struct client_request *rq, const char *upgrade,
		 struct client_stream **ret, struct err *err);

/* ---- problem.c ------------------------------------------------------------------------------- */

/* Reads the rest of a response of 400 or more; returns -1. */
int problem_read(const struct client *c, struct client_stream *s, struct err *err);
/* Sets the error of a lost connection: -errno, or 0 for its end. */
int problem_broken(ssize_t n, struct err *err);

#endif
