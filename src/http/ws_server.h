/* SPDX-License-Identifier: Apache-2.0 */
/* The server side of a WebSocket (RFC 6455). No call blocks. Memory is limited to one message
 * of the peer, and only the last of its pings is answered. Used by one thread. */
#ifndef LODGE_HTTP_WS_SERVER_H
#define LODGE_HTTP_WS_SERVER_H

#include "base/auto.h"
#include "http/conn_io.h"
#include "http/http_request.h"

struct ws;

enum ws_code {
	WS_NORMAL = 1000,
	WS_GOING_AWAY = 1001,
	WS_PROTOCOL = 1002, /* the peer violated the protocol */
	WS_NO_CODE = 1005, /* never sent: no code was given */
	WS_BAD_TEXT = 1007, /* not UTF-8 */
	WS_POLICY = 1008,
	WS_TOO_BIG = 1009,
	WS_INTERNAL = 1011,
};

/* ---- handshake ------------------------------------------------------------------------------- */

/* Checks that the request is a handshake. ERR_INVALID, with sys EPROTONOSUPPORT for a 426 response,
 * whose headers are then set. */
int ws_check(struct http_request *rq, struct err *err);
/* The first offered protocol with this prefix, *ret_len bytes long. NULL: none. */
const char *ws_offered(const struct http_request *rq, const char *prefix, size_t *ret_len);
/* Sends 101. protocol: one of those offered, or NULL. Messages over max bytes are rejected. */
int ws_accept(struct http_request *rq, const char *protocol, size_t max, struct ws **ret,
	      struct err *err);
/* `early` was received before; both must stay valid. */
int ws_new(struct conn_io *io, const void *early, size_t early_len, size_t max, struct ws **ret,
	   struct err *err);
void ws_free(struct ws *w);
DEFINE_AUTO(struct ws *, ws_free);

/* ---- messages -----------------------------------------------------------------------------------
 */

enum ws_event {
	WS_NOTHING, /* nothing available now */
	WS_TEXT, /* complete, and valid UTF-8 */
	WS_BINARY,
	WS_CLOSED, /* by the peer, or because of an error in its input: call ws_end() */
	WS_GONE, /* disconnected without a close frame */
};
/* The next message. Its payload is valid until the next call. */
enum ws_event ws_read(struct ws *w, const void **ret, size_t *ret_len);

/* Queues one message (WS_TEXT or WS_BINARY) after ws_flush() has sent the previous one. The payload
 * must stay valid until it is sent. Ignored after ws_close(). */
void ws_send(struct ws *w, enum ws_event kind, const void *data, size_t len);
/* 0: everything was sent; 1: continue at POLLOUT; -1: disconnected. */
int ws_flush(struct ws *w);
/* Sends a close frame after the current message. Only the first call counts. */
void ws_close(struct ws *w, enum ws_code code, const char *reason);
/* Sends the rest, as far as it can, and discards what the peer sends. Call it again at POLLIN, and
 * at POLLOUT if ws_is_blocked(). True: the peer has closed, or is gone. */
bool ws_end(struct ws *w);
bool ws_is_blocked(const struct ws *w);

/* Sends pings. Returns in how many ms to call again, or -1: the peer was silent for too long.
 * listening: the caller reads input; otherwise silence means nothing. */
int ws_keep(struct ws *w, int64_t now_ms, bool listening);

#endif
