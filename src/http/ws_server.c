/* SPDX-License-Identifier: Apache-2.0 */
/* Messages out of frames and back. libwslay does the frames; what they may mean is decided here. */
#include "http/ws_server.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <wslay/wslay.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/vec.h"

enum {
	CONTROL_MAX = 125, /* bytes of a frame that steers */
	REASON_MAX = CONTROL_MAX - 2,
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
	int fd;
	const uint8_t *early; /* came with the request */
	size_t early_len;
	size_t max;

	/* in */
	uint8_t kind; /* opcode of the message under way; 0: none */
	bool whole; /* it was handed out */
	uint64_t got; /* of the frame under way */
	uint8_t *buf; /* of the message */
	size_t len, capacity;
	size_t steer_len; /* of a frame that steers, between those of a message */
	uint8_t steer[CONTROL_MAX];
	bool deaf; /* what comes is not looked at any more */
	bool eof;

	/* out */
	struct control pong, ping, bye;
	struct {
		bool due;
		uint8_t kind;
		const uint8_t *data;
		size_t len;
	} message;
	struct wslay_frame_iocb now; /* what is left of the frame under way */
	bool sending, closed, blocked, broken;
	uint8_t steering[CONTROL_MAX]; /* its bytes */

	/* life */
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
	do
		n = recv(w->fd, buf, len, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		w->eof = true;
	if (n > 0)
		w->heard = true;
	return n > 0 ? n : -1;
}

/* One who makes room for what had to wait is alive, even if his pong is still behind it. */
static ssize_t on_send(const uint8_t *data, size_t len, int flags, void *arg)
{
	struct ws *w = arg;
	ssize_t n;

	do
		n = send(w->fd, data, len,
			 MSG_DONTWAIT | MSG_NOSIGNAL | (flags & WSLAY_MSG_MORE ? MSG_MORE : 0));
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		w->heard |= w->blocked;
		w->blocked = false;
		return n;
	}
	if (n < 0 && errno == EAGAIN)
		w->blocked = true;
	else
		w->broken = true;
	return -1;
}

int ws_new(int fd, const void *early, size_t early_len, size_t max, struct ws **ret,
	   struct err *err)
{
	static const struct wslay_frame_callbacks callbacks = { .send_callback = on_send,
								.recv_callback = on_recv };
	struct ws *w = calloc(1, sizeof(*w));

	if (!w || wslay_frame_context_init(&w->frames, &callbacks, w) != 0) {
		free(w);
		close(fd);
		return err_sys(err, ENOMEM, "connection");
	}
	w->fd = fd;
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
	close(w->fd);
	free(w->buf);
	free(w);
}

int ws_fd(const struct ws *w)
{
	return w->fd;
}

/* ---- in ---------------------------------------------------------------------------------------
 */

static enum ws_event refuse(struct ws *w, enum ws_code code, const char *reason)
{
	ws_close(w, code, reason);
	w->deaf = true;
	return WS_CLOSED;
}

static bool is_control(uint8_t opcode)
{
	return wslay_is_ctrl_frame(opcode);
}

/* A frame begins: may it, here? */
static enum ws_event check_frame(struct ws *w, const struct wslay_frame_iocb *f)
{
	uint64_t room = w->max - (f->opcode == WSLAY_CONTINUATION_FRAME ? w->len : 0);

	if (!f->mask)
		return refuse(w, WS_PROTOCOL, "frame without a mask");
	if (f->rsv)
		return refuse(w, WS_PROTOCOL, "no extension was negotiated");
	if (f->opcode == WSLAY_CONNECTION_CLOSE || f->opcode == WSLAY_PING ||
	    f->opcode == WSLAY_PONG)
		return WS_NOTHING;
	if (f->opcode == WSLAY_CONTINUATION_FRAME ? !w->kind : w->kind != 0)
		return refuse(w, WS_PROTOCOL, "unexpected continuation frame");
	if (f->opcode > WSLAY_BINARY_FRAME)
		return refuse(w, WS_PROTOCOL, "unknown frame type");
	if (f->payload_length > room)
		return refuse(w, WS_TOO_BIG, "message too big");
	if (f->opcode != WSLAY_CONTINUATION_FRAME) {
		w->kind = f->opcode;
		w->len = 0;
	}
	return WS_NOTHING;
}

static int add(struct ws *w, const struct wslay_frame_iocb *f)
{
	if (vec_reserve(&w->buf, &w->capacity, w->len + f->data_length) < 0)
		return -1;
	memcpy(w->buf + w->len, f->data, f->data_length);
	w->len += f->data_length;
	return 0;
}

/* What a peer may say, but for what is told without a frame. */
static bool is_code(unsigned code)
{
	return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
	       (code >= 3000 && code <= 4999);
}

static enum ws_event take_close(struct ws *w)
{
	unsigned code = WS_NO_CODE;

	if (w->steer_len == 1)
		return refuse(w, WS_PROTOCOL, "truncated close code");
	if (w->steer_len) {
		code = (unsigned)w->steer[0] << 8 | w->steer[1];
		if (!is_code(code))
			return refuse(w, WS_PROTOCOL, "invalid close code");
		if (!json_is_utf8(w->steer + 2, w->steer_len - 2))
			return refuse(w, WS_BAD_TEXT, "close reason is not valid UTF-8");
	}
	return refuse(w, (enum ws_code)code, "");
}

static void set(struct control *c, const void *bytes, size_t len)
{
	memcpy(c->bytes, bytes, len);
	c->len = len;
	c->due = true;
}

/* A frame has ended. */
static enum ws_event take_frame(struct ws *w, const struct wslay_frame_iocb *f)
{
	if (f->opcode == WSLAY_CONNECTION_CLOSE)
		return take_close(w);
	if (f->opcode == WSLAY_PING)
		set(&w->pong, w->steer, w->steer_len);
	if (is_control(f->opcode) || !f->fin)
		return WS_NOTHING;
	if (w->kind == WSLAY_TEXT_FRAME && !json_is_utf8(w->buf, w->len))
		return refuse(w, WS_BAD_TEXT, "text is not valid UTF-8");
	w->whole = true;
	return w->kind == WSLAY_TEXT_FRAME ? WS_TEXT : WS_BINARY;
}

/* A frame, or a part of one. */
static enum ws_event take(struct ws *w, const struct wslay_frame_iocb *f)
{
	enum ws_event event = w->got ? WS_NOTHING : check_frame(w, f);

	if (event != WS_NOTHING)
		return event;
	if (!w->got && is_control(f->opcode))
		w->steer_len = 0;
	if (!is_control(f->opcode)) {
		if (add(w, f) < 0)
			return refuse(w, WS_INTERNAL, "out of memory");
	} else if (f->data_length) {
		memcpy(w->steer + w->steer_len, f->data, f->data_length);
		w->steer_len += f->data_length;
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
		if (w->deaf)
			return WS_CLOSED;
		n = wslay_frame_recv(w->frames, &f);
		if (n == WSLAY_ERR_WANT_READ)
			return w->eof ? WS_GONE : WS_NOTHING;
		event = n < 0 ? refuse(w, WS_PROTOCOL, "malformed frame") : take(w, &f);
	}
	if (event == WS_TEXT || event == WS_BINARY) {
		*ret = w->buf;
		*ret_len = w->len;
	}
	return event;
}

/* ---- out --------------------------------------------------------------------------------------
 */

void ws_send(struct ws *w, enum ws_event kind, const void *data, size_t len)
{
	if (w->bye.due || w->closed)
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

	if (w->bye.due || w->closed)
		return;
	while (len && !json_is_utf8(reason, len)) /* cut within a character */
		len--;
	memcpy(bytes + 2, reason, len);
	set(&w->bye, bytes, code == WS_NO_CODE ? 0 : len + 2);
}

static void begin(struct ws *w, uint8_t opcode, const uint8_t *data, size_t len)
{
	w->now = (struct wslay_frame_iocb){
		.fin = 1, .opcode = opcode, .payload_length = len, .data = data, .data_length = len
	};
	w->sending = true;
}

/* The bytes are taken along: the next ping may come before they are sent. */
static void begin_control(struct ws *w, uint8_t opcode, struct control *c)
{
	memcpy(w->steering, c->bytes, c->len);
	c->due = false;
	begin(w, opcode, w->steering, c->len);
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
		begin(w, w->message.kind, w->message.data, w->message.len);
	} else if (w->bye.due) {
		begin_control(w, WSLAY_CONNECTION_CLOSE, &w->bye);
		w->closed = true; /* nothing comes after it */
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

/* ---- the end ----------------------------------------------------------------------------------
 */

/* False: time is over. */
static bool wait_for(const struct ws *w, short events, int64_t until)
{
	struct pollfd p = { .fd = w->fd, .events = events };
	int64_t left = until - clock_mono_ms();

	return left > 0 && (poll(&p, 1, (int)left) > 0 || errno == EINTR);
}

static void throw_away(struct ws *w)
{
	char buf[16 << 10];
	ssize_t n = recv(w->fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		w->eof = true;
}

/* Without reading to his end, what he sent last would make the kernel throw away what we did. */
void ws_end(struct ws *w, int ms)
{
	int64_t until = clock_mono_ms() + ms;
	int left;

	while ((left = ws_flush(w)) > 0 && !w->eof && wait_for(w, POLLIN | POLLOUT, until))
		throw_away(w);
	if (left == 0)
		shutdown(w->fd, SHUT_WR);
	while (left == 0 && !w->eof && wait_for(w, POLLIN, until))
		throw_away(w);
}

/* ---- life -------------------------------------------------------------------------------------
 */

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
		set(&w->ping, "", 0);
	}
	ping = w->pinged_at + PING_MS - now;
	silence = w->heard_at + SILENCE_MS - now;
	return (int)(ping < silence ? ping : silence);
}
