/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between messages and frames. libwslay parses frames; their meaning is checked here. */

#include "http/ws_server.h"

#include <errno.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <wslay/wslay.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/vec.h"

enum {
	CONTROL_MAX = 125, /* maximum payload of a control frame */
	REASON_MAX = CONTROL_MAX - 2,
	FRAME_HEAD = 14,
	DISCARDS_MAX = 64, /* reads of one call */
	PING_MS = 20000,
	SILENCE_MS = 60000,
};

struct control {
	bool due;
	size_t len;
	uint8_t bytes[CONTROL_MAX];
};

struct ws {
	wslay_frame_context_ptr frames;
	struct conn_io *io;
	const uint8_t *early; /* received together with the request */
	size_t early_len;
	size_t max;

	/* input */
	uint8_t kind; /* opcode of the current message; 0: none */
	bool whole; /* the message was returned to the caller */
	uint64_t got; /* bytes received of the current frame */
	uint8_t *buf; /* payload of the message */
	size_t len, capacity;
	size_t control_len; /* payload of a control frame, which may interrupt a message */
	uint8_t control[CONTROL_MAX];
	bool ignoring; /* further input is ignored */
	bool eof;

	/* output */
	struct control pong, ping, close;
	struct {
		bool due;
		uint8_t kind;
		const uint8_t *data;
		size_t len;
	} message;
	struct wslay_frame_iocb now; /* unsent rest of the current frame */
	bool sending, closed, blocked, broken, shut;
	uint8_t head[FRAME_HEAD]; /* of the current frame, sent with its payload */
	size_t head_len;
	uint8_t control_out[CONTROL_MAX]; /* its payload */

	/* liveness */
	bool heard;
	int64_t heard_at, pinged_at; /* 0: not yet */
};

/* ---- bytes ------------------------------------------------------------------------------------
 */

static ssize_t take_early(struct ws *w, uint8_t *buf, size_t len)
{
	size_t n = len < w->early_len ? len : w->early_len;

	memcpy(buf, w->early, n);
	w->early += n;
	w->early_len -= n;
	return (ssize_t)n;
}

static ssize_t on_recv(uint8_t *buf, size_t len, int flags, void *arg)
{
	struct ws *w = arg;
	ssize_t n;

	(void)flags;
	if (w->early_len)
		return take_early(w, buf, len);
	n = conn_io_recv(w->io, buf, len);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		w->eof = true;
	if (n > 0)
		w->heard = true;
	return n > 0 ? n : -1;
}

/* Bytes that were sent of the head and the data together; -1: `blocked` or `broken`. A peer that
 * drains blocked data is alive, even if its pong is still queued behind it. */
static ssize_t send_frame(struct ws *w, const uint8_t *data, size_t len)
{
	union {
		const uint8_t *in;
		void *out;
	} payload = { data };
	struct iovec parts[] = { { w->head, w->head_len }, { payload.out, len } };
	int skip = w->head_len == 0;
	ssize_t n = conn_io_send(w->io, parts + skip, (len ? 2 : 1) - skip, false);

	if (n >= 0) {
		w->heard |= w->blocked;
		w->blocked = false;
	} else if (errno == EAGAIN) {
		w->blocked = true;
	} else {
		w->broken = true;
	}
	return n;
}

/* Removes the part of the head that was sent; returns what is left of n. */
static size_t drop_head(struct ws *w, size_t n)
{
	size_t sent = n < w->head_len ? n : w->head_len;

	memmove(w->head, w->head + sent, w->head_len - sent);
	w->head_len -= sent;
	return n - sent;
}

/* The head waits for its payload, so that both share a packet. */
static ssize_t on_send(const uint8_t *data, size_t len, int flags, void *arg)
{
	struct ws *w = arg;
	ssize_t n;

	if (flags & WSLAY_MSG_MORE && !w->head_len && len <= FRAME_HEAD) {
		memcpy(w->head, data, len);
		w->head_len = len;
		return (ssize_t)len;
	}
	n = send_frame(w, data, len);
	if (n < 0)
		return -1;
	n = (ssize_t)drop_head(w, (size_t)n);
	w->blocked |= n == 0;
	return n > 0 ? n : -1;
}

int ws_new(struct conn_io *io, const void *early, size_t early_len, size_t max, struct ws **ret,
	   struct err *err)
{
	static const struct wslay_frame_callbacks callbacks = { .send_callback = on_send,
								.recv_callback = on_recv };
	struct ws *w = calloc(1, sizeof(*w));

	if (!w || wslay_frame_context_init(&w->frames, &callbacks, w) != 0) {
		free(w);
		return err_sys(err, ENOMEM, "connection");
	}
	w->io = io;
	w->early = early;
	w->early_len = early_len;
	w->max = max;
	*ret = w;
	return 0;
}

void ws_free(struct ws *w)
{
	if (!w)
		return;
	wslay_frame_context_free(w->frames);
	free(w->buf);
	free(w);
}

/* ---- input ----------------------------------------------------------------------------------- */

static enum ws_event fail(struct ws *w, enum ws_code code, const char *reason)
{
	ws_close(w, code, reason);
	w->ignoring = true;
	return WS_CLOSED;
}

static bool is_control(uint8_t opcode)
{
	return wslay_is_ctrl_frame(opcode);
}

/* Checks a new frame. */
static enum ws_event check_frame(struct ws *w, const struct wslay_frame_iocb *f)
{
	uint64_t capacity = w->max - (f->opcode == WSLAY_CONTINUATION_FRAME ? w->len : 0);

	if (!f->mask)
		return fail(w, WS_PROTOCOL, "frame without a mask");
	if (f->rsv)
		return fail(w, WS_PROTOCOL, "no extension was negotiated");
	if (f->opcode == WSLAY_CONNECTION_CLOSE || f->opcode == WSLAY_PING ||
	    f->opcode == WSLAY_PONG)
		return WS_NOTHING;
	if (f->opcode == WSLAY_CONTINUATION_FRAME ? !w->kind : w->kind != 0)
		return fail(w, WS_PROTOCOL, "unexpected continuation frame");
	if (f->opcode > WSLAY_BINARY_FRAME)
		return fail(w, WS_PROTOCOL, "unknown frame type");
	if (f->payload_length > capacity)
		return fail(w, WS_TOO_BIG, "message too big");
	if (f->opcode != WSLAY_CONTINUATION_FRAME) {
		w->kind = f->opcode;
		w->len = 0;
	}
	return WS_NOTHING;
}

static int append(struct ws *w, const struct wslay_frame_iocb *f)
{
	if (vec_reserve(&w->buf, &w->capacity, w->len + f->data_length) < 0)
		return -1;
	memcpy(w->buf + w->len, f->data, f->data_length);
	w->len += f->data_length;
	return 0;
}

/* Close codes that a peer may send. */
static bool is_close_code(unsigned code)
{
	return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
	       (code >= 3000 && code <= 4999);
}

static enum ws_event take_close(struct ws *w)
{
	unsigned code = WS_NO_CODE;

	if (w->control_len == 1)
		return fail(w, WS_PROTOCOL, "truncated close code");
	if (w->control_len) {
		code = (unsigned)w->control[0] << 8 | w->control[1];
		if (!is_close_code(code))
			return fail(w, WS_PROTOCOL, "invalid close code");
		if (!json_is_utf8(w->control + 2, w->control_len - 2))
			return fail(w, WS_BAD_TEXT, "close reason is not valid UTF-8");
	}
	return fail(w, (enum ws_code)code, "");
}

static void set_control(struct control *c, const void *bytes, size_t len)
{
	memcpy(c->bytes, bytes, len);
	c->len = len;
	c->due = true;
}

/* A frame is complete. */
static enum ws_event take_frame(struct ws *w, const struct wslay_frame_iocb *f)
{
	if (f->opcode == WSLAY_CONNECTION_CLOSE)
		return take_close(w);
	if (f->opcode == WSLAY_PING)
		set_control(&w->pong, w->control, w->control_len);
	if (is_control(f->opcode) || !f->fin)
		return WS_NOTHING;
	if (w->kind == WSLAY_TEXT_FRAME && !json_is_utf8(w->buf, w->len))
		return fail(w, WS_BAD_TEXT, "text is not valid UTF-8");
	w->whole = true;
	return w->kind == WSLAY_TEXT_FRAME ? WS_TEXT : WS_BINARY;
}

/* Handles a frame or a part of one. */
static enum ws_event take_part(struct ws *w, const struct wslay_frame_iocb *f)
{
	enum ws_event event = w->got ? WS_NOTHING : check_frame(w, f);

	if (event != WS_NOTHING)
		return event;
	if (!w->got && is_control(f->opcode))
		w->control_len = 0;
	if (!is_control(f->opcode)) {
		if (append(w, f) < 0)
			return fail(w, WS_INTERNAL, "out of memory");
	} else if (f->data_length) {
		memcpy(w->control + w->control_len, f->data, f->data_length);
		w->control_len += f->data_length;
	}
	w->got += f->data_length;
	if (w->got < f->payload_length)
		return WS_NOTHING;
	w->got = 0;
	return take_frame(w, f);
}

enum ws_event ws_read(struct ws *w, const void **ret, size_t *ret_len)
{
	struct wslay_frame_iocb f = { 0 };
	enum ws_event event = WS_NOTHING;
	ssize_t n;

	if (w->whole)
		w->kind = 0;
	w->whole = false;
	while (event == WS_NOTHING) {
		if (w->ignoring)
			return WS_CLOSED;
		n = wslay_frame_recv(w->frames, &f);
		if (n == WSLAY_ERR_WANT_READ)
			return w->eof ? WS_GONE : WS_NOTHING;
		event = n < 0 ? fail(w, WS_PROTOCOL, "malformed frame") : take_part(w, &f);
	}
	if (event == WS_TEXT || event == WS_BINARY) {
		*ret = w->buf;
		*ret_len = w->len;
	}
	return event;
}

/* ---- output ---------------------------------------------------------------------------------- */

void ws_send(struct ws *w, enum ws_event kind, const void *data, size_t len)
{
	if (w->close.due || w->closed)
		return;
	w->message.kind = kind == WS_TEXT ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME;
	w->message.data = data;
	w->message.len = len;
	w->message.due = true;
}

void ws_close(struct ws *w, enum ws_code code, const char *reason)
{
	uint8_t bytes[CONTROL_MAX] = { (uint8_t)((unsigned)code >> 8), (uint8_t)code };
	size_t len = strnlen(reason, REASON_MAX);

	if (w->close.due || w->closed)
		return;
	while (len && !json_is_utf8(reason, len)) /* do not split a character */
		len--;
	memcpy(bytes + 2, reason, len);
	set_control(&w->close, bytes, code == WS_NO_CODE ? 0 : len + 2);
}

static void begin_frame(struct ws *w, uint8_t opcode, const uint8_t *data, size_t len)
{
	w->now = (struct wslay_frame_iocb){
		.fin = 1, .opcode = opcode, .payload_length = len, .data = data, .data_length = len
	};
	w->sending = true;
}

/* Copies the payload: the next ping may arrive before it is sent. */
static void begin_control(struct ws *w, uint8_t opcode, struct control *c)
{
	memcpy(w->control_out, c->bytes, c->len);
	c->due = false;
	begin_frame(w, opcode, w->control_out, c->len);
}

static bool begin_next(struct ws *w)
{
	if (w->closed)
		return false;
	if (w->pong.due) {
		begin_control(w, WSLAY_PONG, &w->pong);
	} else if (w->ping.due) {
		begin_control(w, WSLAY_PING, &w->ping);
	} else if (w->message.due) {
		w->message.due = false;
		begin_frame(w, w->message.kind, w->message.data, w->message.len);
	} else if (w->close.due) {
		begin_control(w, WSLAY_CONNECTION_CLOSE, &w->close);
		w->closed = true; /* a close frame is the last one */
	} else {
		return false;
	}
	return true;
}

int ws_flush(struct ws *w)
{
	while (w->sending || begin_next(w)) {
		ssize_t n = wslay_frame_send(w->frames, &w->now);

		if (n < 0)
			return n == WSLAY_ERR_WANT_WRITE && !w->broken ? 1 : -1;
		w->now.data += n;
		w->now.data_length -= (size_t)n;
		w->sending = w->now.data_length > 0;
	}
	return 0;
}

/* ---- completion ------------------------------------------------------------------------------ */

static void discard_input(struct ws *w)
{
	char buf[16 << 10];
	ssize_t n = 1;

	for (int i = 0; i < DISCARDS_MAX && n > 0; i++)
		n = conn_io_recv(w->io, buf, sizeof(buf));
	if (n == 0 || (n < 0 && errno != EAGAIN))
		w->eof = true;
}

/* Reads until the peer closes: unread input would make the kernel discard what was sent last. */
bool ws_end(struct ws *w)
{
	int left = w->shut ? 0 : ws_flush(w);

	if (left == 0 && !w->shut) {
		conn_io_shut(w->io);
		w->shut = true;
	}
	discard_input(w);
	return left < 0 || w->eof;
}

bool ws_is_blocked(const struct ws *w)
{
	return w->blocked;
}

/* ---- liveness -------------------------------------------------------------------------------- */

int ws_keep(struct ws *w, int64_t now, bool listening)
{
	int64_t ping, silence;

	if (w->heard || !listening || !w->heard_at)
		w->heard_at = now;
	w->heard = false;
	if (!w->pinged_at)
		w->pinged_at = now;
	if (now - w->heard_at >= SILENCE_MS)
		return -1;
	if (now - w->pinged_at >= PING_MS) {
		w->pinged_at = now;
		set_control(&w->ping, "", 0);
	}
	ping = w->pinged_at + PING_MS - now;
	silence = w->heard_at + SILENCE_MS - now;
	return (int)(ping < silence ? ping : silence);
}

/* ---- handshake ------------------------------------------------------------------------------- */

enum { NONCE = 16, NONCE_TEXT = BASE64_ENCODED(NONCE), SHA1 = 20 };

static const char version[] = "13";

/* The next item of a comma-separated list; NULL at its end. */
static const char *next_word(const char *list, size_t *ret_len)
{
	list += strspn(list, ", \t");
	*ret_len = strcspn(list, ", \t");
	return *ret_len ? list : NULL;
}

static bool has_word(const char *list, const char *word)
{
	size_t len = 0;

	while (list && (list = next_word(list, &len))) {
		if (len == strlen(word) && strncasecmp(list, word, len) == 0)
			return true;
		list += len;
	}
	return false;
}

const char *ws_offered(const struct http_request *rq, const char *prefix, size_t *ret_len)
{
	const char *list = http_header(rq, "Sec-WebSocket-Protocol");
	size_t len = 0;

	while (list && (list = next_word(list, &len))) {
		if (len >= strlen(prefix) && memcmp(list, prefix, strlen(prefix)) == 0) {
			*ret_len = len;
			return list;
		}
		list += len;
	}
	return NULL;
}

static int other_protocol(struct http_request *rq, const char *why, struct err *err)
{
	http_set_header(rq, "Connection", "Upgrade");
	http_set_header(rq, "Upgrade", "websocket");
	http_set_header(rq, "Sec-WebSocket-Version", version);
	err_set(err, ERR_INVALID, "%s", why);
	err->sys = EPROTONOSUPPORT;
	return -1;
}

static bool is_nonce(const char *key)
{
	char bytes[BASE64_DECODED(NONCE_TEXT)];
	size_t len;

	return key && strlen(key) == NONCE_TEXT &&
	       base64_decode(key, strlen(key), bytes, &len) == 0 && len == NONCE;
}

int ws_check(struct http_request *rq, struct err *err)
{
	const char *asked = http_header(rq, "Sec-WebSocket-Version");

	if (strcmp(http_method(rq), "GET") != 0 ||
	    !has_word(http_header(rq, "Upgrade"), "websocket") ||
	    !has_word(http_header(rq, "Connection"), "upgrade"))
		return other_protocol(rq, "WebSocket required: send GET with `Upgrade: websocket`",
				      err);
	if (!asked || strcmp(asked, version) != 0)
		return other_protocol(rq, "Sec-WebSocket-Version: must be 13", err);
	if (!is_nonce(http_header(rq, "Sec-WebSocket-Key")))
		return err_set(err, ERR_INVALID, "Sec-WebSocket-Key: must be 16 bytes in base64");
	return 0;
}

/* Computes Sec-WebSocket-Accept (RFC 6455, 4.2.2). */
static int prove(struct http_request *rq, struct err *err)
{
	char text[64], proof[BASE64_ENCODED(SHA1) + 1] = "";
	unsigned char digest[EVP_MAX_MD_SIZE];

	snprintf(text, sizeof(text), "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11",
		 http_header(rq, "Sec-WebSocket-Key"));
	if (EVP_Digest(text, strlen(text), digest, NULL, EVP_sha1(), NULL) != 1)
		return err_set(err, ERR_INTERNAL, "SHA-1 is not available");
	base64_encode(digest, SHA1, proof);
	http_set_header(rq, "Sec-WebSocket-Accept", proof);
	return 0;
}

int ws_accept(struct http_request *rq, const char *protocol, size_t max, struct ws **ret,
	      struct err *err)
{
	struct conn_io *io;
	const void *early;
	size_t early_len;

	if (prove(rq, err) < 0)
		return -1;
	if (protocol)
		http_set_header(rq, "Sec-WebSocket-Protocol", protocol);
	if (http_upgrade(rq, "websocket", &io, &early, &early_len, err) < 0)
		return -1;
	return ws_new(io, early, early_len, max, ret, err);
}
