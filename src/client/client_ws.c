/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of a WebSocket (RFC 6455), without extensions. libwslay parses and writes
 * frames; their meaning is checked here. */
#include "client/client_ws.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <wslay/wslay.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/vec.h"
#include "client/client_error.h"
#include "client/client_request.h"
#include "client/sha1.h"

enum {
	MESSAGE_MAX = 16 << 20,
	CONTROL_MAX = 125,
	KEY_BYTES = 16,
	KEY_TEXT = BASE64_ENCODED(KEY_BYTES),
	ANSWER_TEXT = BASE64_ENCODED(SHA1_SIZE),
	PIECE = 16 << 10, /* written at a time */
	CODE_NORMAL = 1000,
	CODE_NONE = 1005,
	CODE_PROTOCOL = 1002,
};

struct client_ws {
	struct client_stream *s;
	wslay_frame_context_ptr frames;
	/* the current frame */
	uint64_t got; /* bytes received of it */
	char control[CONTROL_MAX + 1];
	size_t control_len;
	/* the current message */
	uint8_t kind; /* opcode; 0: none */
	bool whole; /* the caller has it */
	char *buf;
	size_t len, capacity;
	bool drained; /* libwslay has no bytes that were not looked at */
	ssize_t received; /* the last result: bytes, 0 at the end, or -errno */
	/* output */
	uint8_t out[PIECE]; /* so that the parts of a frame are sent together */
	size_t out_len;
	int failed; /* 0 or -errno */
	bool said_bye;
};

/* ---- bytes ----------------------------------------------------------------------------------- */

static ssize_t on_recv(uint8_t *buf, size_t len, int flags, void *arg)
{
	struct client_ws *w = arg;
	struct conn *c = &w->s->conn;

	(void)flags;
	w->received = c->at < c->len ? 1 : conn_fill(c, false);
	if (w->received > 0)
		w->received = conn_read(c, buf, len);
	return w->received > 0 ? w->received : -1;
}

static void flush(struct client_ws *w)
{
	if (!w->failed)
		w->failed = conn_write(&w->s->conn, w->out, w->out_len);
	w->out_len = 0;
}

static ssize_t on_send(const uint8_t *data, size_t len, int flags, void *arg)
{
	struct client_ws *w = arg;

	(void)flags;
	if (len > sizeof(w->out) - w->out_len)
		flush(w);
	if (len > sizeof(w->out))
		len = sizeof(w->out);
	memcpy(w->out + w->out_len, data, len);
	w->out_len += len;
	return w->failed ? -1 : (ssize_t)len;
}

static int on_mask(uint8_t *buf, size_t len, void *arg)
{
	struct client_ws *w = arg;

	if (getrandom(buf, len, 0) != (ssize_t)len)
		w->failed = -EIO;
	return w->failed ? -1 : 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void expected_accept(const char *key, char to[ANSWER_TEXT + 1])
{
	unsigned char sum[SHA1_SIZE];
	char text[128];
	int n = snprintf(text, sizeof(text), "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);

	sha1(text, (size_t)n, sum);
	base64_encode(sum, SHA1_SIZE, to);
	to[ANSWER_TEXT] = '\0';
}

static int check_answer(struct client *c, struct client_stream *s, const char *key, struct err *err)
{
	char want[ANSWER_TEXT + 1];
	const char *got = client_header(s, "Sec-WebSocket-Accept");
	const char *upgrade = client_header(s, "Upgrade");

	if (client_status(s) >= 400)
		return problem_read(c, s, err);
	expected_accept(key, want);
	if (client_status(s) != 101 || !upgrade || strcasecmp(upgrade, "websocket") != 0 || !got ||
	    strcmp(got, want) != 0 || client_header(s, "Sec-WebSocket-Extensions"))
		return err_set(err, ERR_UNAVAILABLE, "%.120s: the WebSocket handshake failed",
			       c->url);
	return 0;
}

static int make_key(char to[KEY_TEXT + 1], struct err *err)
{
	unsigned char bytes[KEY_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return err_sys(err, errno, "random bytes");
	base64_encode(bytes, sizeof(bytes), to);
	to[KEY_TEXT] = '\0';
	return 0;
}

struct client_ws *client_ws_wrap(struct client_stream *s)
{
	static const struct wslay_frame_callbacks callbacks = { on_send, on_recv, on_mask };
	struct client_ws *w = calloc(1, sizeof(*w));

	if (!w || wslay_frame_context_init(&w->frames, &callbacks, w) != 0) {
		client_close(s);
		free(w);
		return NULL;
	}
	w->s = s;
	w->drained = true;
	return w;
}

int client_ws_open(struct client *c, const char *path, struct client_ws **ret, struct err *err)
{
	char key[KEY_TEXT + 1];
	const char *const headers[] = { "Upgrade", "websocket",		"Sec-WebSocket-Version",
					"13",	   "Sec-WebSocket-Key", key,
					NULL };
	struct client_request rq = { .method = "GET", .path = path, .headers = headers };
	auto_call(client_close) struct client_stream *s = NULL;

	if (make_key(key, err) < 0 || request_send(c, &rq, true, &s, err) < 0 ||
	    check_answer(c, s, key, err) < 0)
		return -1;
	*ret = client_ws_wrap(steal_ptr(&s));
	return *ret ? 0 : err_sys(err, ENOMEM, "terminal");
}

int client_ws_fd(const struct client_ws *w)
{
	return w->s->conn.fd;
}

bool client_ws_pending(const struct client_ws *w)
{
	return !w->drained || conn_pending(&w->s->conn);
}

const char *client_ws_header(const struct client_ws *w, const char *name)
{
	return client_header(w->s, name);
}

/* ---- out ------------------------------------------------------------------------------------- */

static int send_frame(struct client_ws *w, uint8_t op, const void *data, size_t len,
		      struct err *err)
{
	struct wslay_frame_iocb f = { .fin = 1,
				      .opcode = op,
				      .mask = 1,
				      .payload_length = len,
				      .data = data,
				      .data_length = len };

	(void)wslay_frame_send(w->frames, &f); /* on_send() takes all of it, or fails */
	flush(w);
	return w->failed ? problem_broken(w->failed, err) : 0;
}

int client_ws_send(struct client_ws *w, bool text, const void *data, size_t len, struct err *err)
{
	return send_frame(w, text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME, data, len, err);
}

static void send_close(struct client_ws *w, unsigned code)
{
	unsigned char bytes[2] = { (unsigned char)(code >> 8), (unsigned char)code };
	struct pollfd p = { .fd = client_ws_fd(w), .events = POLLOUT };
	struct err ignored;

	/* a peer that does not read is not waited for */
	if (!w->said_bye && !w->failed && poll(&p, 1, 0) > 0)
		(void)send_frame(w, WSLAY_CONNECTION_CLOSE, bytes, code == CODE_NONE ? 0 : 2,
				 &ignored);
	w->said_bye = true;
}

void client_ws_close(struct client_ws *w)
{
	if (!w)
		return;
	send_close(w, CODE_NORMAL);
	wslay_frame_context_free(w->frames);
	client_close(w->s);
	free(w->buf);
	free(w);
}

/* ---- in -------------------------------------------------------------------------------------- */

static int fail_malformed(struct client_ws *w, const char *why, struct err *err)
{
	send_close(w, CODE_PROTOCOL);
	return err_set(err, ERR_UNAVAILABLE, "WebSocket protocol error: %s", why);
}

static bool is_control(uint8_t op)
{
	return wslay_is_ctrl_frame(op);
}

/* Of control frames libwslay checks the length and that they are whole. */
static int check_frame(struct client_ws *w, const struct wslay_frame_iocb *f, struct err *err)
{
	bool more = f->opcode == WSLAY_CONTINUATION_FRAME;

	if (f->rsv || f->mask)
		return fail_malformed(w, "a frame no server sends", err);
	if (is_control(f->opcode)) {
		w->control_len = 0;
		return f->opcode > WSLAY_PONG ? fail_malformed(w, "an unknown frame", err) : 0;
	}
	if (f->opcode > WSLAY_BINARY_FRAME || more != (w->kind != 0))
		return fail_malformed(w, "a frame out of order", err);
	if (f->payload_length > MESSAGE_MAX - w->len)
		return fail_malformed(w, "a message that is too long", err);
	if (!more)
		w->kind = f->opcode;
	return 0;
}

static int add_payload(struct client_ws *w, const struct wslay_frame_iocb *f, struct err *err)
{
	bool control = is_control(f->opcode);

	if (!f->data_length)
		return 0;
	if (!control && vec_reserve(&w->buf, &w->capacity, w->len + f->data_length) < 0)
		return err_sys(err, ENOMEM, "terminal");
	memcpy(control ? w->control + w->control_len : w->buf + w->len, f->data, f->data_length);
	*(control ? &w->control_len : &w->len) += f->data_length;
	return 0;
}

static int handle_close(struct client_ws *w, struct client_ws_message *ret, struct err *err)
{
	const unsigned char *p = (const unsigned char *)w->control;
	size_t len = w->control_len;

	if (len == 1 || (len && !json_is_utf8(w->control + 2, len - 2)))
		return fail_malformed(w, "a malformed end", err);
	w->control[len] = '\0';
	*ret = (struct client_ws_message){ .kind = CLIENT_WS_END,
					   .data = len ? w->control + 2 : "",
					   .len = len ? len - 2 : 0,
					   .code = len ? p[0] << 8 | p[1] : CODE_NONE };
	send_close(w, len ? CODE_NORMAL : CODE_NONE);
	return 1;
}

/* Processes a complete frame. 1: a message is complete; 0: not yet. */
static int handle_frame(struct client_ws *w, const struct wslay_frame_iocb *f,
			struct client_ws_message *ret, struct err *err)
{
	if (f->opcode == WSLAY_CONNECTION_CLOSE)
		return handle_close(w, ret, err);
	if (f->opcode == WSLAY_PING)
		return send_frame(w, WSLAY_PONG, w->control, w->control_len, err);
	if (f->opcode == WSLAY_PONG || !f->fin)
		return 0;
	if (w->kind == WSLAY_TEXT_FRAME && !json_is_utf8(w->buf, w->len))
		return fail_malformed(w, "a text that is not UTF-8", err);
	*ret = (struct client_ws_message){
		.kind = w->kind == WSLAY_TEXT_FRAME ? CLIENT_WS_TEXT : CLIENT_WS_BYTES,
		.data = w->len ? w->buf : "",
		.len = w->len,
	};
	w->whole = true;
	return 1;
}

/* Handles a frame or a part of one, as handle_frame(). */
static int handle_part(struct client_ws *w, const struct wslay_frame_iocb *f,
		       struct client_ws_message *ret, struct err *err)
{
	if ((!w->got && check_frame(w, f, err) < 0) || add_payload(w, f, err) < 0)
		return -1;
	w->got += f->data_length;
	if (w->got < f->payload_length)
		return 0;
	w->got = 0;
	return handle_frame(w, f, ret, err);
}

/* Nothing more was received. */
static int end_read(struct client_ws *w, struct client_ws_message *ret, struct err *err)
{
	w->drained = w->received == -EAGAIN;
	if (w->drained) {
		*ret = (struct client_ws_message){ .kind = CLIENT_WS_NOTHING };
		return 0;
	}
	problem_broken(w->received, err);
	if (w->received == 0)
		snprintf(err->msg, sizeof(err->msg), "lodged closed the WebSocket connection");
	return -1;
}

int client_ws_read(struct client_ws *w, struct client_ws_message *ret, struct err *err)
{
	struct wslay_frame_iocb f;
	int done = 0;

	if (w->whole) {
		w->kind = 0;
		w->len = 0;
		w->whole = false;
	}
	w->drained = false;
	while (!done) {
		ssize_t n = wslay_frame_recv(w->frames, &f);

		if (n >= 0)
			done = handle_part(w, &f, ret, err);
		else if (n != WSLAY_ERR_WANT_READ)
			done = fail_malformed(w, "a malformed frame", err);
		else if (w->received <= 0)
			return end_read(w, ret, err);
	}
	return done < 0 ? -1 : 0;
}
