/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 server, independent of lodge. Connections wait in one epoll set and have no thread.
 * The thread that hears of a request reads it, runs the handler, which may block, and writes the
 * response. Above a limit of handlers, requests get 503. */
#ifndef LODGE_HTTP_SERVER_H
#define LODGE_HTTP_SERVER_H

#include "base/auto.h"
#include "base/err.h"
#include "http/http_request.h"

struct http_server;

typedef void http_handler_fn(void *arg, struct http_request *rq);

enum { HTTP_CONNECTIONS = 12000, HTTP_REQUESTS = 1024 }; /* defaults */

/* 0 selects the default, which is in parentheses. */
struct http_opts {
	http_handler_fn *handler; /* may block */
	void *arg;
	/* Called before the body is read; must not block. Non-zero rejects the request with this
	 * status and the body set by http_reply(). May be NULL. */
	int (*admit)(void *arg, struct http_request *rq);
	/* Called after each request, on any thread; must not block. Status 499: the client
	 * disconnected before the response. May be NULL. */
	void (*log)(void *arg, const struct http_request *rq, unsigned status, uint64_t bytes,
		    uint64_t us);
	unsigned max_connections; /* (HTTP_CONNECTIONS) */
	unsigned max_per_address; /* whose clients have not sent a valid key (1024) */
	unsigned max_requests; /* in flight (HTTP_REQUESTS) */
	size_t max_head; /* bytes of request line and headers (15 kB) */
	unsigned idle_s; /* seconds a connection may be idle (60) */
	unsigned slow_s; /* seconds without progress (30) */
	/* Addresses and networks of reverse proxies, whose X-Forwarded-For names the client and
	 * whose connections do not count for max_per_address. NULL-terminated; NULL: none. */
	const char *const *trusted_proxies;
	const char *tls_cert, *tls_key; /* PEM texts; NULL: no TLS */
};

int http_server_new(const struct http_opts *opts, struct http_server **ret, struct err *err);
/* Listens on "ADDR:PORT", "[ADDR]:PORT" or "unix:PATH" (with this file mode); may be called several
 * times. With port 0 the kernel chooses one. ret (may be NULL) gets the bound address. */
int http_server_listen(struct http_server *s, const char *address, mode_t mode, char *ret,
		       size_t size, struct err *err);
/* Stops accepting connections and requests, and waits up to ms for those in flight. */
void http_server_drain(struct http_server *s, unsigned ms);
/* Closes all connections. NULL is allowed. */
void http_server_free(struct http_server *s);
DEFINE_AUTO(struct http_server *, http_server_free);

struct http_metrics {
	unsigned connections, requests; /* now */
	uint64_t total; /* requests answered */
};
void http_server_metrics(struct http_server *s, struct http_metrics *ret);

#endif
