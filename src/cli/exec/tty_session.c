/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec/tty_session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file_io.h"
#include "cli/core/human.h"
#include "cli/core/options.h"
#include "cli/core/terminal.h"

enum {
	PIECE = 4096, /* what a socket that is writable takes without waiting */
	KEY_LEAVE = 0x1d, /* ctrl-] */
	KEY_INTERRUPT = 0x03,
	KEY_EOF = 0x04,
	GOING_ON = -1, /* or an exit status, */
	FAILED = -2, /* or err */
	EOF_FIRST_MS = 100,
	EOF_LAST_MS = 2000,
	REPLAY_MS = 1000,
};

/* ---- connecting ------------------------------------------------------------------------------ */

static int make_path(const struct tty_session *s, bool tail, char path[JOB_PATH], struct err *err)
{
	char place[48] = "";
	uint32_t rows, cols;
	size_t n;
	int more;

	terminal_size(&rows, &cols);
	if (client_path(path, JOB_PATH, err, "/v1/sessions/%s/tty", s->ref) < 0)
		return -1;
	n = strlen(path);
	if (*s->id && !tail && (s->knows_at || s->from_start))
		snprintf(place, sizeof(place), "&offset=%llu", (unsigned long long)s->at);
	more = snprintf(path + n, JOB_PATH - n, "?cols=%u&rows=%u%s%s%s%s", cols, rows,
			*s->id ? "&exec=" : "", s->id, place, *s->id || !s->query ? "" : s->query);
	return more < (int)(JOB_PATH - n) ? 0 : err_set(err, ERR_INVALID, "a name is too long");
}

/* Of a log whose oldest bytes are gone, the last of it. */
static int open_ws(struct tty_session *s, struct err *err)
{
	char path[JOB_PATH];

	if (make_path(s, false, path, err) < 0)
		return -1;
	if (client_ws_open(s->client, path, &s->ws, err) == 0)
		return 0;
	if (err->sys != ERANGE || make_path(s, true, path, err) < 0)
		return -1;
	return client_ws_open(s->client, path, &s->ws, err);
}

static void say_size(struct tty_session *s, uint32_t rows, uint32_t cols)
{
	char text[64];
	struct err ignored;
	int n = snprintf(text, sizeof(text), "{\"resize\":{\"cols\":%u,\"rows\":%u}}", cols, rows);

	if (s->ws)
		(void)client_ws_send(s->ws, true, text, (size_t)n, &ignored);
}

/* What is seen may be half of what the program drew, with words of lodge in it: it draws again when
 * the size changes. */
static void draw_again(struct tty_session *s)
{
	uint32_t rows, cols;

	terminal_size(&rows, &cols);
	if (rows > 1)
		say_size(s, rows - 1, cols);
	say_size(s, rows, cols);
}

int tty_session_open(struct tty_session *s, char ret_outcome[32], struct err *err)
{
	bool back = *s->id && !s->from_start;
	const char *id;

	s->signals = -1;
	if (open_ws(s, err) < 0)
		return -1;
	if (back) {
		s->replay_ms = clock_wall_ms() + REPLAY_MS;
		draw_again(s);
	}
	id = client_ws_header(s->ws, "Lodge-Exec");
	if (!*s->id)
		snprintf(s->id, sizeof(s->id), "%s", id ? id : "");
	snprintf(ret_outcome, 32, "%s", client_ws_header(s->ws, "Lodge-Outcome") ?: "");
	return *s->id ? 0 : err_set(err, ERR_UNAVAILABLE, "the answer has no Lodge-Exec");
}

void tty_session_fini(struct tty_session *s)
{
	if (s->raw)
		terminal_restore();
	s->raw = false;
	client_ws_close(s->ws);
	s->ws = NULL;
	if (s->signals >= 0)
		close(s->signals);
	s->signals = -1;
}

/* ---- what comes ------------------------------------------------------------------------------ */

static int show(struct tty_session *s, const char *bytes, size_t len, struct err *err)
{
	int e = file_write_all(STDOUT_FILENO, bytes, len);

	s->at += len;
	if (e == 0)
		return GOING_ON;
	err_sys(err, -e, "standard output");
	return FAILED;
}

/* {"exec_id", "offset"}, or {"exit": ...} */
static int hear(struct tty_session *s, const char *text, size_t len, struct err *err)
{
	auto_json json_t *v = json_loadb(text, len, 0, NULL);
	const json_t *offset = json_object_get(v, "offset"), *end = json_object_get(v, "exit");

	if (json_is_integer(offset)) {
		s->at = (uint64_t)json_integer_value(offset);
		s->knows_at = true;
	}
	if (!end)
		return GOING_ON;
	if (!json_is_null(json_object_get(end, "exit_code")) ||
	    !json_is_null(json_object_get(end, "signal")))
		return exec_job_status(end);
	err_set(err, ERR_NOT_FOUND, "it went away with its sandbox: nobody knows how it ended");
	return FAILED;
}

/* One, so that whoever floods us cannot keep us from what is typed. A connection that is of no use
 * any more is closed. */
static int take_message(struct tty_session *s, struct err *err)
{
	struct client_ws_message m;
	bool good = client_ws_read(s->ws, &m, err) == 0;

	if (good && m.kind == CLIENT_WS_NOTHING)
		return GOING_ON;
	if (good && m.kind == CLIENT_WS_BYTES)
		return show(s, m.data, m.len, err);
	if (good && m.kind == CLIENT_WS_TEXT)
		return hear(s, m.data, m.len, err);
	if (good)
		err_set(err, ERR_UNAVAILABLE, "%.200s",
			m.len ? m.data : "lodged closed the connection");
	client_ws_close(s->ws);
	s->ws = NULL;
	return GOING_ON;
}

/* ---- what is typed --------------------------------------------------------------------------- */

/* Takes out what is for lodge: ctrl-] d leaves, ctrl-] twice is one. True: leave. The room is for
 * one more. */
static bool filter(struct tty_session *s, char *buf, ssize_t *len)
{
	char out[PIECE + 1] = { 0 };
	ssize_t n = 0;

	for (ssize_t i = 0; i < *len; i++) {
		if (s->armed && buf[i] == 'd')
			return true;
		if (s->armed && buf[i] != KEY_LEAVE)
			out[n++] = KEY_LEAVE;
		if (!s->armed && buf[i] == KEY_LEAVE) {
			s->armed = true;
			continue;
		}
		s->armed = false;
		out[n++] = buf[i];
	}
	if (n)
		memcpy(buf, out, (size_t)n);
	*len = n;
	return false;
}

static void send_input(struct tty_session *s, const char *bytes, size_t len)
{
	struct err ignored;

	if (client_ws_send(s->ws, false, bytes, len, &ignored) == 0)
		return;
	client_ws_close(s->ws);
	s->ws = NULL;
}

/* For when somebody is there again; ctrl-c is for lodge meanwhile: true. What does not fit is told
 * by the bell. */
static bool keep_typed(struct tty_session *s, const char *bytes, size_t len)
{
	if (memchr(bytes, KEY_INTERRUPT, len))
		return true;
	if (len > sizeof(s->typed) - s->typed_len) {
		(void)!write(STDERR_FILENO, "\a", 1);
		return false;
	}
	memcpy(s->typed + s->typed_len, bytes, len);
	s->typed_len += len;
	return false;
}

/* A pipe that ends is as if ctrl-d were typed, which means the end only where a line begins. */
static bool type(struct tty_session *s)
{
	char buf[PIECE + 1];
	ssize_t n = read(STDIN_FILENO, buf, PIECE - 1);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return false;
	if (n <= 0) {
		s->eof = true;
		s->eof_ms = EOF_FIRST_MS;
		if (s->tty)
			return true; /* the terminal is gone */
		n = 0;
		if (s->in_line)
			buf[n++] = '\n';
		buf[n++] = KEY_EOF;
	} else if (s->tty && !s->no_keys && filter(s, buf, &n)) {
		return true;
	}
	if (s->tty && n > 0 && s->replay_ms > clock_wall_ms()) {
		buf[n] = '\0';
		n = (ssize_t)terminal_strip_reports(buf, (size_t)n);
	}
	if (!n)
		return false;
	if (!s->ws)
		return keep_typed(s, buf, (size_t)n);
	s->in_line = buf[n - 1] != '\n';
	send_input(s, buf, (size_t)n);
	return false;
}

/* ---- signals --------------------------------------------------------------------------------- */

static int catch_signals(struct tty_session *s, struct err *err)
{
	static const int caught[] = { SIGWINCH, SIGCONT, SIGINT, SIGQUIT, SIGTERM, SIGHUP };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaddset(&set, caught[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signals < 0 ? err_sys(err, errno, "signals") : 0;
}

static void resize(struct tty_session *s)
{
	uint32_t rows, cols;

	terminal_size(&rows, &cols);
	say_size(s, rows, cols);
}

/* True: leave. */
static bool take_signals(struct tty_session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCONT && s->raw)
			(void)terminal_raw(
				STDIN_FILENO); /* a shell may have changed it meanwhile */
		if (info.ssi_signo == SIGCONT || info.ssi_signo == SIGWINCH) {
			resize(s);
			continue;
		}
		s->left_by = (int)info.ssi_signo;
		return true;
	}
	return false;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* A pipe waits until there is somebody. */
static bool hears(const struct tty_session *s)
{
	return !s->eof && (s->ws || s->tty);
}

/* A pipe at its end says so to everybody who reads; ctrl-d only to one, and to nobody while a shell
 * sets its terminal up. */
static void say_eof(struct tty_session *s)
{
	static const char key = KEY_EOF;

	if (!s->eof_ms)
		return;
	send_input(s, &key, 1);
	s->eof_ms = s->eof_ms < EOF_LAST_MS ? 2 * s->eof_ms : EOF_LAST_MS;
}

/* Input is read when it can be sent, so that sending never waits; -1 as ms: as long as it takes.
 * True: leave. */
static bool wait_for_news(struct tty_session *s, int ms)
{
	struct pollfd p[] = { { .fd = s->signals, .events = POLLIN },
			      { .fd = s->ws ? client_ws_fd(s->ws) : -1, .events = POLLIN },
			      { .fd = hears(s) ? STDIN_FILENO : -1, .events = POLLIN } };
	struct pollfd out = { .fd = p[1].fd, .events = POLLOUT };
	int n;

	if (s->ws && client_ws_pending(s->ws))
		ms = 0;
	else if (s->ws && s->eof_ms)
		ms = s->eof_ms;
	n = poll(p, 3, ms);
	if (n < 0)
		return errno != EINTR;
	if (n == 0 && ms && s->ws)
		say_eof(s);
	if (p[0].revents && take_signals(s))
		return true;
	if (!p[2].revents)
		return false;
	if (s->ws && poll(&out, 1, 0) == 0) {
		p[2].fd = -1;
		p[1].events = POLLIN | POLLOUT;
		return poll(p, 3, -1) < 0 && errno != EINTR;
	}
	return type(s);
}

/* Back to the same byte. True: leave. -1: for good. */
static int connect_again(struct tty_session *s, struct err *err)
{
	int ms = retry_is_worth(err) ? retry_pause(&s->again, err) : -1;

	if (ms < 0)
		return -1;
	if (wait_for_news(s, ms))
		return 1;
	if (open_ws(s, err) < 0)
		return retry_is_worth(err) ? 0 : -1;
	retry_over(&s->again);
	draw_again(s);
	if (s->typed_len)
		send_input(s, s->typed, s->typed_len);
	s->typed_len = 0;
	return 0;
}

static int leave(const struct tty_session *s, enum screen_end *ret, int *ret_status)
{
	*ret = s->left_by ? SCREEN_LEFT : SCREEN_DETACHED;
	*ret_status = s->left_by ? 128 + s->left_by : 0;
	return 0;
}

static int converse(struct tty_session *s, enum screen_end *ret, int *ret_status, struct err *err)
{
	int status, r;

	err_set(err, ERR_UNAVAILABLE, "the connection broke");
	for (;;) {
		if (s->ws) {
			status = take_message(s, err);
			if (status == FAILED)
				return -1;
			*ret = SCREEN_EXIT;
			*ret_status = status;
			if (status != GOING_ON)
				return 0;
		}
		r = s->ws ? wait_for_news(s, -1) : connect_again(s, err);
		if (r < 0)
			return -1;
		if (r > 0)
			return leave(s, ret, ret_status);
	}
}

int tty_session_run(struct tty_session *s, enum screen_end *ret, int *ret_status, struct err *err)
{
	int r;

	s->tty = isatty(STDIN_FILENO);
	if (catch_signals(s, err) < 0)
		return -1;
	s->raw = s->tty && terminal_raw(STDIN_FILENO);
	s->again.raw = s->raw;
	r = converse(s, ret, ret_status, err);
	if (s->raw)
		terminal_restore();
	s->raw = false;
	return r;
}

int tty_session_job(const struct exec_job *j, bool from_start, struct err *err)
{
	auto_fini(tty_session_fini) struct tty_session s = {
		.client = j->client, .ref = j->ref, .from_start = from_start, .signals = -1
	};
	enum screen_end end = SCREEN_EXIT;
	char outcome[32];
	int status = 0;

	memcpy(s.id, j->id, sizeof(s.id));
	if (tty_session_open(&s, outcome, err) < 0)
		return -1;
	if (!from_start && isatty(STDIN_FILENO))
		fprintf(stderr, "lodge: " SCREEN_KEYS " leaves it running\n");
	if (tty_session_run(&s, &end, &status, err) < 0)
		return -1;
	if (end != SCREEN_EXIT)
		fprintf(stderr, "\r\nlodge: left; it goes on (lodge attach %s %s)\n", j->ref,
			j->id);
	return status;
}
