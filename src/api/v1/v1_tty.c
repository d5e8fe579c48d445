/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal over a WebSocket. The command is an ordinary one and independent of its sockets: each
 * socket chooses the output offset where it starts. A full log waits for every socket, so a slow
 * one slows the command and takes no memory here. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "api/core/internal.h"
#include "api/v1/v1_exec.h"
#include "http/ws_server.h"

enum {
	MESSAGE_MAX = 1 << 20,
	TAIL = 64 << 10, /* bytes of output sent by default */
	PIECE = 64 << 10,
	INPUT_MAX = 256 << 10, /* pending input, above which the socket is not read */
	TEXT_MAX = 1024,
	LOOK_MS = 500, /* interval of checks for a shutdown */
	FED_MIN_MS = 1, /* interval of checks for accepted input */
	FED_MAX_MS = 100,
	END_MS = 2000, /* time for the closing handshake */
};

static const char protocol[] = "lodge.tty";

_Static_assert((int)PIECE >= (int)TAIL && (int)PIECE >= (int)TEXT_MAX, "all fits the buffer");

struct tty {
	struct api_call *c;
	struct exec_handle *x;
	struct ws *ws;
	bool fresh; /* this socket started the command */
	uint64_t at; /* sent so far */
	bool over; /* `exit` was sent */
	bool blocked; /* the socket's buffer is full */
	char *input; /* input that the command has not read */
	size_t input_len, input_capacity;
	int pause_ms; /* time until the next check of the input */
	int64_t end_at; /* of the closing handshake; 0: not begun */
	char buf[PIECE]; /* payload of the current message */
};

/* ---- options --------------------------------------------------------------------------------- */

struct tty_request {
	const char *exec; /* NULL: start a new one */
	int64_t offset; /* -1: the tail of the output */
	struct exec_opts want;
};

static int check_request(struct api_call *c, const struct tty_request *w, struct err *err)
{
	static const char *const of_new[] = { "command", "cwd", "user", NULL };

	for (size_t i = 0; w->exec && of_new[i]; i++)
		if (http_query(c->rq, of_new[i]))
			return err_set(err, ERR_INVALID, "%s: not allowed with exec", of_new[i]);
	if (!w->exec && w->offset >= 0)
		return err_set(err, ERR_INVALID, "offset: only allowed with exec");
	if (w->exec && !http_query(c->rq, "cols") != !http_query(c->rq, "rows"))
		return err_set(err, ERR_INVALID, "cols and rows: pass both or neither");
	return 0;
}

static int parse_request(struct api_call *c, struct tty_request *ret, struct err *err)
{
	static const char *const shell[] = { "bash", "-l", NULL };
	struct tty_request w = { .exec = http_query(c->rq, "exec"), .offset = -1 };
	int64_t cols = 80, rows = 24;

	if (api_query_int(c, "cols", 1, V1_SIDE_MAX, &cols, err) < 0 ||
	    api_query_int(c, "rows", 1, V1_SIDE_MAX, &rows, err) < 0 ||
	    api_query_int(c, "offset", 0, INT64_MAX, &w.offset, err) < 0 ||
	    check_request(c, &w, err) < 0)
		return -1;
	w.want = (struct exec_opts){ .text = http_query(c->rq, "command"),
				     .cwd = http_query(c->rq, "cwd"),
				     .user = http_query(c->rq, "user"),
				     .rows = (uint32_t)rows,
				     .cols = (uint32_t)cols,
				     .pty = true,
				     .stdin_open = true,
				     .background = true,
				     .hold_output = true,
				     .no_resume = v1_no_resume(c) };
	w.want.login = w.want.text;
	w.want.interactive_shell = !w.want.text;
	if (!w.want.text)
		w.want.argv = shell;
	*ret = w;
	return 0;
}

/* ---- start of the output --------------------------------------------------------------------- */

/* Starts truncated output at a line, otherwise at an escape sequence, otherwise at a character. */
static size_t safe_cut(const char *bytes, size_t len)
{
	const char *line = memchr(bytes, '\n', len), *escape = memchr(bytes, '\033', len);
	size_t n = 0;

	if (line)
		return (size_t)(line - bytes) + 1;
	if (escape)
		return (size_t)(escape - bytes);
	while (n < len && n < 3 && ((unsigned char)bytes[n] & 0xc0) == 0x80)
		n++;
	return n;
}

/* Locks the position first, so that the output is still there when it is read. */
static int begin_at_tail(struct tty *t, struct err *err)
{
	uint64_t start, end;
	size_t n;

	do {
		exec_output_range(t->x, GUEST_EXEC_OUT, &start, &end);
		t->at = end - start > TAIL ? end - TAIL : start;
		exec_hold_output(t->x, t->at, UINT64_MAX);
		if (!t->at)
			return 0;
		if (exec_read(t->x, GUEST_EXEC_OUT, t->at, t->buf, TAIL, 0, &n, err) == 0) {
			t->at += safe_cut(t->buf, n);
			return 0;
		}
	} while (err->code == ERR_LIMIT && err->sys == ERANGE);
	return -1;
}

static int begin_at(struct tty *t, uint64_t offset, struct err *err)
{
	uint64_t start, end;

	exec_hold_output(t->x, offset, UINT64_MAX);
	exec_output_range(t->x, GUEST_EXEC_OUT, &start, &end);
	t->at = offset;
	if (offset >= start && offset <= end)
		return 0;
	return api_fail(err, ERR_LIMIT, ERANGE, "offset: output exists from %llu to %llu",
			(unsigned long long)start, (unsigned long long)end);
}

static int attach(struct tty *t, const struct tty_request *w, struct err *err)
{
	struct err ignored;

	if (v1_open_exec(t->c, w->exec, &t->x, err) < 0)
		return -1;
	if (http_query(t->c->rq, "cols"))
		(void)exec_resize(t->x, w->want.rows, w->want.cols, &ignored);
	return w->offset < 0 ? begin_at_tail(t, err) : begin_at(t, (uint64_t)w->offset, err);
}

static int start(struct tty *t, const struct tty_request *w, struct err *err)
{
	struct exec_request request = { .want = w->want };
	struct session_ref ref;

	if (api_ref(t->c, t->c->params[0], &ref, err) < 0 ||
	    v1_exec_start(t->c, &ref, &request, &t->x, err) < 0)
		return -1;
	t->fresh = true;
	return 0;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void send_text(struct tty *t, struct json_out *j)
{
	size_t len = 0;
	auto_free char *text = NULL;

	json_out_end(j);
	text = json_out_take(j, &len);
	if (text) {
		memcpy(t->buf, text, len);
		ws_send(t->ws, WS_TEXT, t->buf, len);
	} else {
		ws_close(t->ws, WS_INTERNAL, "out of memory");
	}
}

/* Sends `place`; the first one has the exec_id. */
static void send_place(struct tty *t, const char *exec)
{
	struct json_out j;

	json_out_init(&j, TEXT_MAX);
	json_out_object(&j, NULL);
	if (exec)
		json_out_str(&j, "exec_id", exec);
	json_out_u64(&j, "offset", t->at);
	send_text(t, &j);
}

static void send_exit(struct tty *t)
{
	auto_fini(store_exec_fini) struct store_exec rec = { 0 };
	struct json_out j;
	struct err ignored;

	t->over = true;
	if (exec_get_info(t->x, &rec, &ignored) < 0) {
		ws_close(t->ws, WS_INTERNAL, "out of memory");
		return;
	}
	json_out_init(&j, TEXT_MAX);
	json_out_object(&j, NULL);
	json_out_object(&j, "exit");
	json_out_i64_if(&j, "exit_code", rec.state != EXEC_LOST && !rec.signal, rec.exit_code);
	json_out_i64_if(&j, "signal", rec.signal, rec.signal);
	json_out_end(&j);
	send_text(t, &j);
}

/* Builds the next message; false: none yet. */
static bool send_next(struct tty *t)
{
	bool ended = exec_has_ended(t->x); /* check before reading, so nothing is missed */
	uint64_t start, end;
	struct err err;
	size_t n = 0;

	if (exec_read(t->x, GUEST_EXEC_OUT, t->at, t->buf, PIECE, 0, &n, &err) < 0) {
		exec_output_range(t->x, GUEST_EXEC_OUT, &start, &end);
		if (err.code != ERR_LIMIT || err.sys != ERANGE || start <= t->at) {
			ws_close(t->ws, WS_INTERNAL, "cannot read the output");
			t->over = true;
			return true;
		}
		t->at = start; /* output was discarded in between */
		send_place(t, NULL);
		return true;
	}
	if (n)
		ws_send(t->ws, WS_BINARY, t->buf, n);
	else if (ended)
		send_exit(t);
	t->at += n;
	return n || ended;
}

/* Lets the command write as much as the socket accepted. -1: done or disconnected. */
static int send_pending(struct tty *t)
{
	struct err ignored;
	int r;

	while ((r = ws_flush(t->ws)) == 0) {
		(void)exec_consumed(t->x, t->at, UINT64_MAX, &ignored);
		if (t->over) {
			ws_close(t->ws, WS_NORMAL, "");
			return -1;
		}
		if (!send_next(t))
			break;
	}
	t->blocked = r > 0;
	return r < 0 ? -1 : 0;
}

/* ---- input ----------------------------------------------------------------------------------- */

static int keep_input(struct tty *t, const void *data, size_t len)
{
	if (vec_reserve(&t->input, &t->input_capacity, t->input_len + len) < 0)
		return -1;
	if (len)
		memcpy(t->input + t->input_len, data, len);
	t->input_len += len;
	t->pause_ms = FED_MIN_MS;
	return 0;
}

static void drop_input(struct tty *t)
{
	free(t->input);
	t->input = NULL;
	t->input_len = t->input_capacity = 0;
}

/* Input that the command never reads is dropped, as with any terminal. */
static void feed(struct tty *t)
{
	struct err err;
	size_t n = 0;

	if (!t->input_len)
		return;
	if (exec_offer_stdin(t->x, t->input, t->input_len, &n, &err) < 0 || n == t->input_len) {
		drop_input(t);
		return;
	}
	memmove(t->input, t->input + n, t->input_len - n);
	t->input_len -= n;
	if (n)
		t->pause_ms = FED_MIN_MS;
	else if (t->pause_ms < FED_MAX_MS)
		t->pause_ms *= 2;
}

/* {"resize": {"cols": N, "rows": N}} */
static int take_resize(const char *text, size_t len, int64_t *cols, int64_t *rows, struct err *err)
{
	json_error_t wrong = { .text = "JSON nested too deeply" };
	json_t *v = body_is_shallow(text, len)
			    ? json_loadb(text, len, JSON_REJECT_DUPLICATES, &wrong)
			    : NULL;
	json_t *size = json_object_get(v, "resize");
	int r = -1;

	if (!v)
		err_set(err, ERR_INVALID, "not JSON: %.80s", wrong.text);
	else if (json_object_size(v) != 1 || json_object_size(size) != 2)
		err_set(err, ERR_INVALID,
			"unknown message; only {\"resize\":{\"cols\",\"rows\"}} is supported");
	else if (api_int(size, "cols", 1, V1_SIDE_MAX, cols, err) == 0 &&
		 api_int(size, "rows", 1, V1_SIDE_MAX, rows, err) == 0)
		r = *cols && *rows
			    ? 0
			    : err_set(err, ERR_INVALID, "resize: cols and rows are required");
	json_decref(v);
	return r;
}

static int handle_message(struct tty *t, const char *text, size_t len)
{
	int64_t cols = 0, rows = 0;
	struct err err;

	if (take_resize(text, len, &cols, &rows, &err) < 0) {
		ws_close(t->ws, WS_POLICY, err.msg);
		return -1;
	}
	(void)exec_resize(t->x, (uint32_t)rows, (uint32_t)cols, &err);
	return 0;
}

static bool wants_input(const struct tty *t)
{
	return t->input_len < INPUT_MAX;
}

/* -1: no more input. */
static int read_pending(struct tty *t)
{
	const void *data;
	size_t len;

	while (wants_input(t)) {
		switch (ws_read(t->ws, &data, &len)) {
		case WS_BINARY:
			if (keep_input(t, data, len) < 0) {
				ws_close(t->ws, WS_INTERNAL, "out of memory");
				return -1;
			}
			feed(t);
			break;
		case WS_TEXT:
			if (handle_message(t, data, len) < 0)
				return -1;
			break;
		case WS_NOTHING:
			return 0;
		case WS_CLOSED:
		case WS_GONE:
		default:
			return -1;
		}
	}
	return 0;
}

/* ---- loop ------------------------------------------------------------------------------------ */

static void on_news(void *arg)
{
	http_stream_wake(((const struct tty *)arg)->c->rq);
}

/* Until the next step at the latest; -1: stop. */
static int await_news(struct tty *t)
{
	int keep = ws_keep(t->ws, clock_mono_ms(), wants_input(t));
	int wait = keep < LOOK_MS ? keep : LOOK_MS;

	if (keep < 0) {
		ws_close(t->ws, WS_POLICY, "no response to pings");
		return -1;
	}
	/* while input is pending, nobody reads, and nobody would see the end */
	if (!wants_input(t) && http_is_gone(t->c->rq))
		return -1;
	http_stream_watch(t->c->rq,
			  (short)((wants_input(t) ? POLLIN : 0) | (t->blocked ? POLLOUT : 0)));
	return t->input_len && t->pause_ms < wait ? t->pause_ms : wait;
}

static bool may_go_on(struct tty *t)
{
	if (api_is_draining(t->c->api)) {
		ws_close(t->ws, WS_GOING_AWAY,
			 "service is shutting down; the command keeps running");
		return false;
	}
	if (!api_call_key_holds(t->c)) {
		ws_close(t->ws, WS_POLICY, "the API key was revoked or has expired");
		return false;
	}
	return true;
}

/* The closing handshake. The client may disconnect right after its last message, which still
 * counts: the command gets the rest of the input meanwhile. */
static int step_end(struct tty *t)
{
	bool closed = ws_end(t->ws);
	int64_t left = t->end_at - clock_mono_ms();

	feed(t);
	if (left <= 0 || (closed && !t->input_len))
		return -1;
	http_stream_watch(t->c->rq, (short)(closed		   ? 0
					    : ws_is_blocked(t->ws) ? POLLIN | POLLOUT
								   : POLLIN));
	return t->input_len && t->pause_ms < left ? t->pause_ms : (int)left;
}

static int step(void *arg)
{
	struct tty *t = arg;
	int wait = -1;

	if (t->end_at)
		return step_end(t);
	if (may_go_on(t) && read_pending(t) == 0) {
		feed(t);
		if (send_pending(t) == 0)
			wait = await_news(t);
	}
	if (wait >= 0)
		return wait;
	exec_notify(t->x, NULL, NULL);
	exec_hold_output(t->x, UINT64_MAX, UINT64_MAX); /* stop waiting for this client */
	t->end_at = clock_mono_ms() + END_MS;
	return step_end(t);
}

static int open_tty(struct tty *t, const struct tty_request *w, struct err *err)
{
	size_t len = 0;
	const char *offered = ws_offered(t->c->rq, protocol, &len);
	struct err ignored;

	if ((w->exec ? attach(t, w, err) : start(t, w, err)) < 0)
		return -1;
	http_set_header(t->c->rq, "Lodge-Exec", exec_get_id(t->x));
	if (ws_accept(t->c->rq, offered && len == sizeof(protocol) - 1 ? protocol : NULL,
		      MESSAGE_MAX, &t->ws, err) == 0)
		return 0;
	if (t->fresh) /* the client never learned of this command */
		(void)exec_signal(t->x, SIGKILL, AGENT_TO_TREE, &ignored);
	return -1;
}

static void tty_fini(void *arg)
{
	struct tty *t = arg;

	if (t->x)
		exec_notify(t->x, NULL, NULL);
	ws_free(t->ws);
	exec_close(t->x);
	drop_input(t);
	free(t);
}

int v1_open_tty(struct api_call *c, struct err *err)
{
	struct tty *t;
	struct tty_request w = { .offset = -1 };

	if (ws_check(c->rq, err) < 0 || parse_request(c, &w, err) < 0)
		return -1;
	if (api_is_draining(c->api))
		return err_set(err, ERR_UNAVAILABLE,
			       "service is shutting down; reconnect in a few seconds");
	t = calloc(1, sizeof(*t));
	if (t)
		t->c = c;
	if (!t || !arena_keep(c->arena, t, tty_fini))
		return err_sys(err, ENOMEM, "terminal");
	if (api_take(c, TENANT_STREAMS, 1, err) < 0 || open_tty(t, &w, err) < 0)
		return -1;
	send_place(t, exec_get_id(t->x));
	exec_notify(t->x, on_news, t);
	api_call_detach(c, step, t);
	return 0;
}
