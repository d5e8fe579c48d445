/* SPDX-License-Identifier: Apache-2.0 */
/* Shared types of the HTTP server.
 *
 * A connection waits in the epoll set, armed for one event. The thread that receives the event owns
 * the connection and its request until it arms it again or frees it. The reaper only shuts the
 * socket down, which is an event for the owner. The server's lock protects the list of connections
 * and the counters. A stream that goes on after its handler belongs to the poller
 * (stream_poller.c). */
#ifndef LODGE_HTTP_INTERNAL_H
#define LODGE_HTTP_INTERNAL_H

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "http/conn_io.h"
#include "http/proxy_addr.h"
#include "http/server.h"
#include "http1/http1_chunked.h"
#include "http1/http1_framing.h"

enum {
	LISTENERS_MAX = 16,
	HEADERS_MAX = 100,
	PEER_MAX = 48,
	ADDRESS_BYTES = 16,
	ADDRESS_BUCKETS = 1024,
	ID_MAX = 64,
	DISCARD_SMALL = 256 << 10, /* an unread body that is discarded to keep the connection */
	DISCARD_MAX = 1 << 30, /* the rest of a partially read body that is discarded */
	BYTES_PER_MS = 1, /* a slower transfer than this, beyond slow_s, times out */
};

struct pair {
	char *name, *value;
};

/* What a connection waits for. */
enum conn_state {
	CONN_HEAD, /* a request, or the rest of its head */
	CONN_SENDING, /* to send the rest of a response */
	CONN_DISCARDING, /* the rest of a body that no handler reads */
	CONN_CLOSING, /* the client to close its half: what it sends is discarded */
	CONN_STREAM, /* it is in the set of the poller */
};

/* Received bytes, allocated while there are any: an idle connection has none. */
struct input {
	struct http1_head head;
	struct http1_header headers[HEADERS_MAX];
	size_t at, len; /* those from `at` on are not used yet */
	char bytes[];
};

/* Connections of one address whose latest requests had no valid key. */
struct address {
	struct address *next; /* with the same hash */
	uint8_t bytes[ADDRESS_BYTES]; /* of IPv6 the first half */
	struct conn *newest, *oldest;
	unsigned count;
};

struct conn_list {
	struct conn *newest, *oldest;
};

struct conn {
	struct conn *prev, *next; /* newer and older of the server's list */
	struct conn *newer, *older; /* of its address */
	struct address *address; /* NULL: not counted there */
	struct http_server *server;
	struct conn_io io;
	enum conn_state state;
	bool is_unix, is_proxy, trusted, evicted;
	_Atomic bool armed; /* no thread has it */
	struct in6_addr client; /* IPv4 as ::ffff:a.b.c.d; unused for a unix socket */
	_Atomic int64_t deadline_ms; /* shut down then; 0: never */
	_Atomic bool open_end; /* the response ends only with the connection */
	struct input *in;
	struct http_request *rq; /* whose response or body is under way */
	uint64_t discarded;
};

_Static_assert(sizeof(struct conn) <= 512, "an idle connection is small");

/* What remains to be sent of a response. */
struct output {
	char *bytes;
	size_t at, len;
	const char *fixed; /* then this, which nobody frees */
	size_t fixed_at, fixed_len;
	int file; /* then this; -1: none */
	uint64_t file_at, file_left;
};

enum stream_state {
	STREAM_NONE,
	STREAM_WAITING,
	STREAM_QUEUED,
	STREAM_RUNNING,
	STREAM_ENDED,
};

/* A stream without a thread; see stream_poller.c. */
struct stream {
	struct stream *prev, *next; /* all of the poller */
	struct stream *queued_next;
	struct http_request *rq;
	const struct http_stream_ops *ops; /* NULL: the handler is the stream */
	void *arg;
	enum stream_state state;
	bool woken; /* while it ran */
	uint32_t watched; /* events of an upgraded connection */
	int source; /* another descriptor whose input calls a step; -1: none */
	int64_t due_ms; /* of its next step at the latest */
};

struct stream_queue {
	struct stream *first, *last;
};

struct stream_poller {
	pthread_mutex_t mutex; /* taken last */
	pthread_t thread;
	bool started;
	_Atomic bool stopping;
	int epoll, wake; /* of its thread */
	int work; /* in the server's set: a step is due */
	struct stream *all;
	struct stream_queue ready; /* for the workers */
	struct stream_queue ended; /* for its thread; then they are ready again */
	int64_t until_ms; /* its thread waits at most until then */
};

/* See worker.c. */
struct workers {
	pthread_mutex_t mutex; /* taken last */
	pthread_cond_t turn, watch, end;
	unsigned count; /* of threads */
	unsigned turns, max_turns; /* threads that wait for an event or run */
	unsigned waiting; /* in epoll_wait() */
	unsigned parked; /* without a turn, and without an event */
	struct worker *running; /* with a turn and an event */
	bool started, watching;
	pthread_t watcher;
};

struct http_request {
	struct http_server *server;
	struct conn *conn;
	int64_t started_us;

	/* The head: immutable once it is parsed. */
	const char *method, *path;
	struct pair *headers, *query;
	size_t nheaders, nquery;
	char id[ID_MAX + 1], peer[PEER_MAX];
	struct http1_framing framing;
	bool is_head;
	bool old; /* HTTP/1.0: the end of the connection ends a stream */
	bool close; /* the connection ends after the response */
	bool urgent; /* see http_set_urgent() */
	bool trusted; /* see http_trust() */

	void *context; /* handed from admit() to the handler */
	void (*release_context)(void *context);

	struct http1_chunked chunks;
	bool body_end, malformed;
	bool continued; /* 100 was sent */
	uint64_t body_bytes;
	char *whole; /* result of http_body() */
	int64_t waited_ms;

	bool answered, stream;
	bool aborted; /* the stream must not look complete */
	bool upgraded;
	_Atomic bool broken; /* the client disconnected or was too slow */
	unsigned status;
	struct pair *set;
	size_t nset;
	uint64_t bytes;
	struct output out;
	struct stream stream_state;
};

struct http_server {
	struct http_opts opts;
	struct http1_limits limits;
	struct ssl_ctx_st *tls;
	struct proxy_net proxies[PROXY_NETS_MAX]; /* that are trusted */
	unsigned nproxies;
	int epoll;
	int wake; /* eventfd: readable when the workers must end */
	struct listener {
		struct http_server *server;
		int fd;
		char *path; /* of a unix socket */
	} listeners[LISTENERS_MAX];
	size_t nlisteners;

	pthread_mutex_t lock;
	pthread_cond_t change, tick;
	struct conn_list strangers, trusted;
	struct address *addresses[ADDRESS_BUCKETS];
	unsigned evicted; /* connections that are being closed to make place */
	struct http_metrics metrics;
	_Atomic unsigned busy; /* handlers that run */
	_Atomic bool draining, ending;
	bool reaping;
	pthread_t reaper;
	struct workers workers;
	struct stream_poller poller;
};

#endif
