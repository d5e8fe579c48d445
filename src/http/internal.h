/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of src/http share.
 *
 * Two threads know a request: the library's, which reads and writes, and the worker in which the
 * handler runs. `lock` of the request is between them. A connection is suspended by the library's
 * thread only (wait_worker in exchange.c) and resumed by http_wake() only, both under the lock, so
 * that neither happens twice. Who sees `gone` does not touch the connection any more.
 *
 * Order of locks: a request's, then the server's. */
#ifndef LODGE_HTTP_INTERNAL_H
#define LODGE_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "http/server.h"

enum {
	LISTENERS_MAX = 16,
	HEADERS_MAX = 100,
	PAIR_COST = 64, /* of memory for each header and parameter, counted with the head */
	HEAD_EXTRA = 3 << 10, /* memory of a connection beside its head: for that of the answer */
	ID_MAX = 64,
	BUFFER_SIZE = 64 << 10, /* of each direction of a request, if it is used */
	AHEAD_MAX = 8 << 10, /* a body that is read before anybody asked for it */
	DISCARD_SMALL = 256 << 10, /* a body nobody wants is read for the connection's sake */
	DISCARD_MAX = 1 << 30, /* and the rest of one that was begun, for the answer's */
	BYTES_PER_MS = 1, /* slower than this beyond slow_s is no progress */
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

/* A connection, between the library's notices of its begin and end. The list is under the server's
 * lock; the fields are the library thread's, but for the atomic ones, which the reaper reads. */
struct conn {
	struct conn *prev, *next;
	struct http_server *server;
	int fd;
	char *target; /* of the request whose head is being read, as it came */
	char peer[64];
	_Atomic uint64_t deadline_ms; /* cut then; 0: never */
	_Atomic uint64_t bytes_before; /* received when the last request ended */
	_Atomic bool in_head, begun, half;
	_Atomic bool open_end; /* of the answer: nothing but the connection's end ends it */
};

/* How far the library is with the request. */
enum phase {
	PHASE_HEAD, /* the head is there, the body (there is one) was not begun */
	PHASE_BODY,
	PHASE_WHOLE, /* the body has been read, or there is none */
	PHASE_ANSWER, /* the answer is the library's */
};

struct http_request {
	struct http_server *server;
	struct conn *conn;
	struct MHD_Connection *mhd;
	uint64_t started_us;

	/* The head: made once, then only read. */
	const char *method, *path;
	struct pair *headers, *query;
	size_t nheaders, nquery;
	char *text; /* what all of them point into */
	char id[ID_MAX + 1], peer[64];
	int64_t length;
	bool has_body, chunked, expect, is_head;
	bool old; /* HTTP/1.0: the end of the connection is the end of a stream */

	void *context; /* from admit() to the handler */
	void (*release_context)(void *context);

	pthread_mutex_t lock;
	pthread_cond_t cond; /* for the worker: */
	uint64_t moves; /* it counts what it waits for, lest a late wait miss it */
	_Atomic unsigned refs;
	enum phase phase;
	bool given; /* to a worker */
	bool suspended, gone;
	bool cut; /* by us: the library notices soon */
	bool refused; /* answered at once, and nothing else is read */
	bool no_room; /* the head is so large that the library could not answer */

	bool want_body, body_end;
	struct ring in;
	uint64_t body_bytes, discarded, waited_ms;
	char *whole; /* by http_body() */

	bool answered, stream, stream_end;
	bool aborted; /* a stream that must not look complete */
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

	struct http_request *next; /* in the queue for workers */
};

struct http_server {
	struct http_opts opts;
	char *cert, *key;
	struct listener {
		struct MHD_Daemon *daemon;
		int fd; /* ours after the library let go of it */
		char *path; /* of a unix socket */
	} listeners[LISTENERS_MAX];
	size_t nlisteners;

	pthread_mutex_t lock;
	pthread_cond_t work, change, tick;
	struct conn *conns;
	struct http_metrics numbers;
	unsigned most; /* connections at once, since memory was last given back */
	struct http_request *first, *last; /* no worker yet */
	unsigned queued, busy, idle, workers;
	_Atomic bool draining, ending;
	bool reaping;
	pthread_t reaper;
};

/* clock.c: on the clock that does not jump */
void http_cond_init(pthread_cond_t *cond);
/* False when ms have passed; what was waited for may be there nevertheless. */
bool http_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ms);

/* head.c: what was asked. 0, or the status to refuse with and why. Only memory makes it NULL. */
struct http_request *http_request_new(struct http_server *s, struct conn *c,
				      struct MHD_Connection *mhd);
unsigned http_read_head(struct http_request *rq, const char *method, const char *url,
			const char *target, const char *version, const char **ret_why);
void http_request_free(struct http_request *rq);
/* What the library needs for the parts of a text that this is between, beside the text. */
size_t http_parts_cost(const char *s, size_t len, char between);
/* query.c: splits and decodes in place; false: not to be read, or not in one way only. */
bool http_parse_query(char *text, struct pair **ret, size_t *ret_n);

/* exchange.c */
void http_wake(struct http_request *rq); /* locked */
void http_ended(struct http_request *rq); /* the handler returned */
void http_abort(struct http_request *rq); /* locked: nobody waits for this caller any longer */
enum MHD_Result http_on_request(void *server, struct MHD_Connection *mhd, const char *url,
				const char *method, const char *version, const char *data,
				size_t *size, void **rq);
/* For a callback that reads the answer: there is no more, and the connection must end. */
ssize_t http_broken(struct http_request *rq);
void http_on_completed(void *server, struct MHD_Connection *mhd, void **rq,
		       enum MHD_RequestTerminationCode why);

/* reply.c */
void http_error(struct http_request *rq, unsigned status, const char *code, const char *message,
		bool retryable);
/* Locked: waits for the other thread to move something; -1: the caller is gone or too slow.
 * reading: one who closed his half of the connection sends no more. */
void http_progressed(struct http_request *rq); /* locked */
int http_waited(struct http_request *rq, uint64_t bytes, bool reading);
ssize_t http_on_read(void *rq, uint64_t pos, char *buf, size_t max);

/* work.c */
int http_worker_submit(struct http_server *s, struct http_request *rq); /* -1: too many */
void http_workers_end(struct http_server *s); /* waits until none is left */

/* conn.c */
enum MHD_Result http_on_accept(void *server, const struct sockaddr *addr, socklen_t len);
void http_on_connection(void *server, struct MHD_Connection *mhd, void **conn,
			enum MHD_ConnectionNotificationCode what);
void *http_on_target(void *server, const char *target, struct MHD_Connection *mhd);
void http_conn_await_head(struct conn *c);
void http_conn_deadline(struct conn *c, uint64_t bytes); /* for so many bytes */
void http_conn_cut(struct conn *c); /* at once, and so that nobody takes it for the end */
void http_conn_too_large(struct conn *c, struct MHD_Connection *mhd); /* says so and ends it */
/* So many bytes came since the last request. False: perhaps not. */
bool http_conn_has(struct conn *c, uint64_t bytes);
void http_abort_all(struct http_server *s);
void *http_reap(void *server); /* a thread: ends connections past their deadline */

/* listen.c: a socket that listens; ret and ret_path as far as there is something to say */
int http_listen_on(const char *address, mode_t mode, int *ret_fd, char **ret_path, char *ret,
		   size_t size, struct err *err);

#endif
