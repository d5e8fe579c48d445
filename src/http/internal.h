/* SPDX-License-Identifier: Apache-2.0 */
/* Shared declarations of the HTTP server.
 *
 * Two threads use a request: the library's, which does the I/O, and the worker that runs the
 * handler. The request's `lock` protects what they share. Only the library's thread suspends a
 * connection (wait_worker in exchange.c), and only http_wake() resumes it, both under the lock, so
 * that neither happens twice. After `gone` is set, nothing may touch the connection.
 *
 * Lock order: the request's lock before the server's. */
#ifndef LODGE_HTTP_INTERNAL_H
#define LODGE_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "http/server.h"

enum {
	LISTENERS_MAX = 16,
	HEADERS_MAX = 100,
	PAIR_COST = 64, /* memory charged for each header and parameter, as part of the head */
	HEAD_EXTRA = 3 << 10, /* memory of a connection for the head of its response */
	ID_MAX = 64,
	BUFFER_SIZE = 64 << 10, /* of each direction of a request, allocated when used */
	AHEAD_MAX = 8 << 10, /* a body that is read before the handler asks for it */
	DISCARD_SMALL = 256 << 10, /* an unread body that is discarded to keep the connection */
	DISCARD_MAX = 1 << 30, /* the rest of a partially read body that is discarded */
	BYTES_PER_MS = 1, /* a slower transfer than this, beyond slow_s, times out */
};

struct pair {
	char *name, *value;
};

/* A bounded queue of bytes. */
struct ring {
	char *buf;
	size_t size, start, len;
};
int byte_ring_init(struct ring *r, size_t size);
void byte_ring_fini(struct ring *r);
size_t byte_ring_put(struct ring *r, const void *data, size_t len);
size_t byte_ring_take(struct ring *r, void *buf, size_t size);

/* A connection. The list is protected by the server's lock. The library's thread owns the fields;
 * the reaper reads the atomic ones. */
struct conn {
	struct conn *prev, *next;
	struct http_server *server;
	int fd;
	char *target; /* raw target of the request whose head is being read */
	char peer[64];
	_Atomic uint64_t deadline_ms; /* the connection is closed then; 0: never */
	_Atomic uint64_t bytes_before; /* received when the last request ended */
	_Atomic bool in_head, begun, half;
	_Atomic bool open_end; /* the response ends only with the connection */
};

/* Progress of the library with the request. */
enum phase {
	PHASE_HEAD, /* head received, body announced and not read yet */
	PHASE_BODY,
	PHASE_WHOLE, /* body received, or none was announced */
	PHASE_ANSWER, /* the library has the response */
};

struct http_request {
	struct http_server *server;
	struct conn *conn;
	struct MHD_Connection *mhd;
	uint64_t started_us;

	/* The head: immutable once it is parsed. */
	const char *method, *path;
	struct pair *headers, *query;
	size_t nheaders, nquery;
	char *text; /* storage of these strings */
	char id[ID_MAX + 1], peer[64];
	int64_t length;
	bool has_body, chunked, expect, is_head;
	bool old; /* HTTP/1.0: the end of the connection ends a stream */

	void *context; /* handed from admit() to the handler */
	void (*release_context)(void *context);

	pthread_mutex_t lock;
	pthread_cond_t cond; /* wakes the worker */
	uint64_t moves; /* counts wakeups, so that a late waiter misses none */
	_Atomic unsigned refs;
	enum phase phase;
	bool given; /* submitted to a worker */
	bool suspended, gone;
	bool cut; /* closed by the server; the library notices soon */
	bool refused; /* responded at once; nothing else is read */
	bool no_memory; /* the head leaves the library no memory for a response */

	bool want_body, body_end;
	struct ring in;
	uint64_t body_bytes, discarded, waited_ms;
	char *whole; /* result of http_body() */

	bool answered, stream, stream_end;
	bool aborted; /* the stream must not look complete */
	unsigned status;
	struct MHD_Response *response;
	struct pair *set;
	size_t nset;
	struct ring out;
	uint64_t bytes;

	int upgraded_fd;
	struct MHD_UpgradeResponseHandle *upgraded;
	char *extra;
	size_t extra_len;

	struct http_request *next; /* queue of submitted requests */
};

struct http_server {
	struct http_opts opts;
	char *cert, *key;
	struct listener {
		struct MHD_Daemon *daemon;
		int fd; /* belongs to the library */
		char *path; /* of a unix socket */
	} listeners[LISTENERS_MAX];
	size_t nlisteners;

	pthread_mutex_t lock;
	pthread_cond_t work, change, tick;
	struct conn *conns;
	struct http_metrics metrics;
	unsigned most; /* peak of connections since memory was last trimmed */
	struct http_request *first, *last; /* submitted, no worker yet */
	unsigned queued, busy, idle, workers;
	_Atomic bool draining, ending;
	bool reaping;
	pthread_t reaper;
};

/* http_clock.c: monotonic time */
void http_cond_init(pthread_cond_t *cond);
/* False after ms. The condition may hold nevertheless. */
bool http_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ms);

/* request_head.c: parses a request. Returns 0, or the status and reason of a rejection. NULL: out
 * of memory. */
struct http_request *http_request_new(struct http_server *s, struct conn *c,
				      struct MHD_Connection *mhd);
unsigned http_read_head(struct http_request *rq, const char *method, const char *url,
			const char *target, const char *version, const char **ret_why);
void http_request_free(struct http_request *rq);
/* Memory the library needs for the parts of a text, in addition to the text. */
size_t http_parts_cost(const char *s, size_t len, char between);
/* query_string.c: splits and decodes in place; false: malformed or ambiguous. */
bool http_parse_query(char *text, struct pair **ret, size_t *ret_n);

/* exchange.c */
void http_wake(struct http_request *rq); /* locked */
void http_ended(struct http_request *rq); /* call it when the handler has returned */
void http_abort(struct http_request *rq); /* locked: gives up on the client */
enum MHD_Result http_on_request(void *server, struct MHD_Connection *mhd, const char *url,
				const char *method, const char *version, const char *data,
				size_t *size, void **rq);
/* Result of a read callback that ends the connection early. */
ssize_t http_broken(struct http_request *rq);
void http_on_completed(void *server, struct MHD_Connection *mhd, void **rq,
		       enum MHD_RequestTerminationCode why);

/* response.c */
void http_error(struct http_request *rq, unsigned status, const char *code, const char *message,
		bool retryable);
/* Locked: waits for the other thread to make progress; -1: the client disconnected or is too slow.
 * reading: a client that closed its sending half sends no more. */
void http_progressed(struct http_request *rq); /* locked */
int http_waited(struct http_request *rq, uint64_t bytes, bool reading);
ssize_t http_on_read(void *rq, uint64_t pos, char *buf, size_t max);

/* handler_thread.c */
int http_worker_submit(struct http_server *s, struct http_request *rq); /* -1: too many requests */
void http_workers_end(struct http_server *s); /* waits until all have ended */

/* server_conn.c */
enum MHD_Result http_on_accept(void *server, const struct sockaddr *addr, socklen_t len);
void http_on_connection(void *server, struct MHD_Connection *mhd, void **conn,
			enum MHD_ConnectionNotificationCode what);
void *http_on_target(void *server, const char *target, struct MHD_Connection *mhd);
void http_conn_await_head(struct conn *c);
void http_conn_deadline(struct conn *c, uint64_t bytes); /* time for this many bytes */
void http_conn_cut(struct conn *c); /* closes it at once, and never as an orderly end of a stream */
void http_conn_too_large(struct conn *c, struct MHD_Connection *mhd); /* sends 431 and closes it */
/* Whether this many bytes arrived since the last request. False: unknown. */
bool http_conn_has(struct conn *c, uint64_t bytes);
void http_abort_all(struct http_server *s);
void *http_reap(void *server); /* thread: closes connections past their deadline */

/* listen.c: opens a listening socket. ret: the bound address, ret_path: of a unix socket. */
int http_listen_on(const char *address, mode_t mode, int *ret_fd, char **ret_path, char *ret,
		   size_t size, struct err *err);

#endif
