/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of a WebSocket (RFC 6455), without extensions. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/vec.h"
#include "client/internal.h"
#include "client/sha1.h"

enum {
	MESSAGE_MAX = 16 << 20,
	CONTROL_MAX = 125,
	KEY_BYTES = 16,
	KEY_TEXT = BASE64_ENCODED(KEY_BYTES),
	ANSWER_TEXT = BASE64_ENCODED(SHA1_SIZE),
	PIECE = 16 << 10, /* masked at a time */
	CODE_NORMAL = 1000,
	CODE_NONE = 1005,
	CODE_PROTOCOL = 1002,
};

enum opcode { OP_MORE = 0, OP_TEXT = 1, OP_BINARY = 2, OP_CLOSE = 8, OP_PING = 9, OP_PONG = 10 };

struct client_ws {
	struct client_stream *s;
	/* the current frame */
	unsigned char head[14];
	size_t head_len; /* bytes received of it */
	bool in_frame, fin;
	unsigned op;
	uint64_t left;
	char control[CONTROL_MAX + 1];
	size_t control_len;
	/* the current message */
	unsigned kind; /* 0: none */
	bool whole; /* the caller has it */
	char *buf;
	size_t len, capacity;
	bool said_bye;
};

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
	struct client_ws *w = calloc(1, sizeof(*w));

	if (w)
		w->s = s;
	else
		client_close(s);
	return w;
}

int client_ws_open(struct client *c, const char *path, struct client_ws **ret, struct err *err)
{
	struct client_request rq = { .method = "GET", .path = path };
	auto_call(client_close) struct client_stream *s = NULL;
	char key[KEY_TEXT + 1], upgrade[256];

	if (make_key(key, err) < 0)
		return -1;
	snprintf(upgrade, sizeof(upgrade),
		 "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
		 "Sec-WebSocket-Key: %s\r\n",
		 key);
	if (request_send(c, &rq, upgrade, &s, err) < 0 || check_answer(c, s, key, err) < 0)
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
	return conn_pending(&w->s->conn);
}

const char *client_ws_header(const struct client_ws *w, const char *name)
{
	return client_header(w->s, name);
}

/* ---- out ------------------------------------------------------------------------------------- */

static size_t put_head(unsigned char *to, unsigned op, uint64_t len)
{
	size_t at = 2;

	to[0] = (unsigned char)(0x80 | op);
	to[1] = (unsigned char)(0x80 | (len < 126 ? len : len <= UINT16_MAX ? 126 : 127));
	if (len >= 126)
		for (int shift = len <= UINT16_MAX ? 8 : 56; shift >= 0; shift -= 8)
			to[at++] = (unsigned char)(len >> shift);
	return at;
}

static int send_frame(struct client_ws *w, unsigned op, const void *data, size_t len,
		      struct err *err)
{
	unsigned char out[14 + PIECE], mask[4];
	const unsigned char *from = data;
	size_t at = put_head(out, op, len), done = 0;
	int r = 0;

	if (getrandom(mask, sizeof(mask), 0) != sizeof(mask))
		return err_sys(err, errno, "random bytes");
	memcpy(out + at, mask, sizeof(mask));
	at += sizeof(mask);
	do {
		for (; done < len && at < sizeof(out); done++)
			out[at++] = from[done] ^ mask[done % 4];
		r = conn_write(&w->s->conn, out, at);
		at = 0;
	} while (r == 0 && done < len);
	return r < 0 ? problem_broken(r, err) : 0;
}

int client_ws_send(struct client_ws *w, bool text, const void *data, size_t len, struct err *err)
{
	return send_frame(w, text ? OP_TEXT : OP_BINARY, data, len, err);
}

static void send_close(struct client_ws *w, unsigned code)
{
	unsigned char bytes[2] = { (unsigned char)(code >> 8), (unsigned char)code };
	struct pollfd p = { .fd = client_ws_fd(w), .events = POLLOUT };
	struct err ignored;

	/* a peer that does not read is not waited for */
	if (!w->said_bye && poll(&p, 1, 0) > 0)
		(void)send_frame(w, OP_CLOSE, bytes, code == CODE_NONE ? 0 : 2, &ignored);
	w->said_bye = true;
}

void client_ws_close(struct client_ws *w)
{
	if (!w)
		return;
	if (w->s)
		send_close(w, CODE_NORMAL);
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

static bool is_control(unsigned op)
{
	return op >= OP_CLOSE;
}

static int check_frame(struct client_ws *w, struct err *err)
{
	bool control = is_control(w->op);

	if (w->head[0] & 0x70 || w->head[1] & 0x80)
		return fail_malformed(w, "a frame no server sends", err);
	if (control && (!w->fin || w->left > CONTROL_MAX || w->op > OP_PONG))
		return fail_malformed(w, "a malformed frame", err);
	if (!control && (w->op > OP_BINARY || (w->op == OP_MORE) != (w->kind != 0)))
		return fail_malformed(w, "a frame out of order", err);
	if (!control && w->left > MESSAGE_MAX - w->len)
		return fail_malformed(w, "a message that is too long", err);
	if (control)
		w->control_len = 0;
	else if (w->op != OP_MORE)
		w->kind = w->op;
	return 0;
}

/* The length of the frame head, from its first two bytes. */
static size_t head_size(const struct client_ws *w)
{
	unsigned len = w->head_len < 2 ? 0 : w->head[1] & 0x7f;

	return len == 126 ? 4 : len == 127 ? 10 : 2;
}

static int parse_head(struct client_ws *w, struct err *err)
{
	w->fin = w->head[0] & 0x80;
	w->op = w->head[0] & 0x0f;
	w->left = w->head[1] & 0x7f;
	if (w->head_len > 2) {
		w->left = 0;
		for (size_t i = 2; i < w->head_len; i++)
			w->left = w->left << 8 | w->head[i];
	}
	w->in_frame = true;
	w->head_len = 0;
	return check_frame(w, err);
}

/* Returns bytes, 0 if there are none yet, or -1 with err. */
static ssize_t receive(struct client_ws *w, void *to, size_t size, struct err *err)
{
	ssize_t n = conn_read(&w->s->conn, to, size, false);

	if (n == -EAGAIN)
		return 0;
	if (n > 0)
		return n;
	problem_broken(n, err);
	if (n == 0)
		snprintf(err->msg, sizeof(err->msg), "lodged closed the WebSocket connection");
	return -1;
}

/* 1: a complete head; 0: not yet. */
static int read_head(struct client_ws *w, struct err *err)
{
	while (w->head_len < head_size(w)) {
		ssize_t n = receive(w, w->head + w->head_len, head_size(w) - w->head_len, err);

		if (n <= 0)
			return (int)n;
		w->head_len += (size_t)n;
	}
	return parse_head(w, err) < 0 ? -1 : 1;
}

static int read_payload(struct client_ws *w, struct err *err)
{
	while (w->left) {
		size_t want = w->left < PIECE ? (size_t)w->left : PIECE;
		ssize_t n;

		if (!is_control(w->op) && vec_reserve(&w->buf, &w->capacity, w->len + want) < 0)
			return err_sys(err, ENOMEM, "terminal");
		n = receive(w, is_control(w->op) ? w->control + w->control_len : w->buf + w->len,
			    want, err);
		if (n <= 0)
			return (int)n;
		*(is_control(w->op) ? &w->control_len : &w->len) += (size_t)n;
		w->left -= (uint64_t)n;
	}
	w->in_frame = false;
	return 1;
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
static int handle_frame(struct client_ws *w, struct client_ws_message *ret, struct err *err)
{
	if (w->op == OP_CLOSE)
		return handle_close(w, ret, err);
	if (w->op == OP_PING)
		return send_frame(w, OP_PONG, w->control, w->control_len, err);
	if (w->op == OP_PONG || !w->fin)
		return 0;
	if (w->kind == OP_TEXT && !json_is_utf8(w->buf, w->len))
		return fail_malformed(w, "a text that is not UTF-8", err);
	*ret = (struct client_ws_message){
		.kind = w->kind == OP_TEXT ? CLIENT_WS_TEXT : CLIENT_WS_BYTES,
		.data = w->len ? w->buf : "",
		.len = w->len,
	};
	w->whole = true;
	return 1;
}

int client_ws_read(struct client_ws *w, struct client_ws_message *ret, struct err *err)
{
	if (w->whole) {
		w->kind = 0;
		w->len = 0;
		w->whole = false;
	}
	for (;;) {
		int n = w->in_frame ? 1 : read_head(w, err);

		if (n > 0)
			n = read_payload(w, err);
		if (n < 0)
			return -1;
		if (n == 0) {
			*ret = (struct client_ws_message){ .kind = CLIENT_WS_NOTHING };
			return 0;
		}
		n = handle_frame(w, ret, err);
		if (n != 0)
			return n < 0 ? -1 : 0;
	}
}
