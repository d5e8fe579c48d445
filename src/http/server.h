/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 server over libmicrohttpd that does not know what lodge is. One thread of the library
 * does all input and output; each request that is under way has a thread in which its handler may
 * block, up to a limit, beyond which callers are told to come back. Idle connections have none. */
#ifndef LODGE_HTTP_SERVER_H
#define LODGE_HTTP_SERVER_H

#include "base/auto.h"
#include "base/err.h"
#include "http/http_request.h"

struct http_server;

typedef void http_handler_fn(void *arg, struct http_request *rq);

/* 0 where a field says nothing: the default in brackets. */
struct http_opts {
	http_handler_fn *handler; /* on a thread of its own */
	void *arg;
	/* Before the body is read, on the library's thread; must not block. Not 0: the request is
	 * refused with this status and the text that was set by http_reply(). NULL: everybody. */
	int (*admit)(void *arg, struct http_request *rq);
	/* One line per request, after it, on some thread; must not block. 499: the caller was gone
	 * before there was an answer. NULL: none. */
	void (*log)(void *arg, const struct http_request *rq, unsigned status, uint64_t bytes,
		    uint64_t us);
	unsigned max_connections; /* (12000) */
	unsigned max_per_address; /* (0: as many) */
	unsigned max_requests; /* under way at once (1024) */
	/* Bytes of request line and headers, and 64 more for each header and parameter (15 kB).
	 * Each connection has so much and 3 kB, idle ones too. */
	size_t max_head;
	unsigned idle_s; /* a connection that does nothing (60) */
	unsigned slow_s; /* a reader or writer that makes no progress (30) */
	const char *tls_cert, *tls_key; /* PEM texts; NULL: no TLS */
};

int http_server_new(const struct http_opts *opts, struct http_server **ret, struct err *err);
/* ERR_INVALID: it is no address. */
int http_address_check(const char *address, struct err *err);
/* "ADDR:PORT", "[ADDR]:PORT" or "unix:PATH" (mode of the socket file). Several may be added. With
 * port 0 the kernel chooses; ret (may be NULL) is the address that was bound, in the same form. */
int http_server_listen(struct http_server *s, const char *address, mode_t mode, char *ret,
		       size_t size, struct err *err);
/* No new connections nor requests; waits up to ms for those under way. */
void http_server_drain(struct http_server *s, unsigned ms);
/* Ends them. NULL is allowed. */
void http_server_free(struct http_server *s);
DEFINE_AUTO(struct http_server *, http_server_free);

struct http_metrics {
	unsigned connections, requests; /* now */
	uint64_t total; /* requests answered */
};
void http_server_metrics(struct http_server *s, struct http_metrics *ret);

#endif
