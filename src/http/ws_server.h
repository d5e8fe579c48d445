/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket (RFC 6455), the server's side of one, on a socket. Nothing but ws_end() blocks, and
 * whatever the peer does, no more memory is taken than one message of his needs: of his pings only
 * the last is answered. One thread uses it. */
#ifndef LODGE_HTTP_WS_SERVER_H
#define LODGE_HTTP_WS_SERVER_H

#include "base/auto.h"
#include "http/http_request.h"

struct ws;

enum ws_code {
	WS_NORMAL = 1000,
	WS_GOING_AWAY = 1001,
	WS_PROTOCOL = 1002, /* he broke it */
	WS_NO_CODE = 1005, /* never sent: there was none */
	WS_BAD_TEXT = 1007, /* not UTF-8 */
	WS_POLICY = 1008,
	WS_TOO_BIG = 1009,
	WS_INTERNAL = 1011,
};

/* ---- from a request to it ----------------------------------------------------------------------
 */

/* Whether the request asks for one. ERR_INVALID, with sys EPROTONOSUPPORT where the answer is 426:
 * then the headers of that answer are set. */
int ws_check(struct http_request *rq, struct err *err);
/* The first of the protocols on offer that begins like this; it ends after *ret_len bytes. NULL:
 * there is none. */
const char *ws_offered(const struct http_request *rq, const char *prefix, size_t *ret_len);
/* Answers 101. protocol: one of those on offer, or NULL. Messages of more than max bytes are
 * refused. */
int ws_accept(struct http_request *rq, const char *protocol, size_t max, struct ws **ret,
	      struct err *err);
/* On a socket, which it takes over, also on failure. `early` came before it, and must last. */
int ws_new(int fd, const void *early, size_t early_len, size_t max, struct ws **ret,
	   struct err *err);
void ws_free(struct ws *w);
DEFINE_AUTO(struct ws *, ws_free);
int ws_fd(const struct ws *w); /* for poll() */

/* ---- messages -----------------------------------------------------------------------------------
 */

enum ws_event {
	WS_NOTHING, /* for now */
	WS_TEXT, /* whole, and UTF-8 */
	WS_BINARY,
	WS_CLOSED, /* by him, or because of what he sent: ws_end() remains to be called */
	WS_GONE, /* without a word */
};
/* The next message; its bytes are good until the next call. */
enum ws_event ws_read(struct ws *w, const void **ret, size_t *ret_len);

/* One message (WS_TEXT or WS_BINARY), when ws_flush() has sent the last one. The bytes must stay
 * until it has sent this one. Ignored after ws_close(). */
void ws_send(struct ws *w, enum ws_event kind, const void *data, size_t len);
/* 0: all of it was sent; 1: go on at POLLOUT; -1: he is gone. */
int ws_flush(struct ws *w);
/* Said once, after the message that is under way; the first code counts. */
void ws_close(struct ws *w, enum ws_code code, const char *reason);
/* Sends what is left and waits for his end, at most so long. */
void ws_end(struct ws *w, int ms);

/* Pings now and then; in how many ms to call again, or -1: nothing was heard of him for too long.
 * listening: ws_read() is called when there is something to read, else silence says nothing. */
int ws_keep(struct ws *w, int64_t now_ms, bool listening);

#endif
