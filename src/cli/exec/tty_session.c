/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec/tty_session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "cli/core/terminal.h"

enum {
	PIECE = 4096, /* a writable socket takes this much without blocking */
	KEY_DETACH = 0x1d, /* ctrl-] */
	KEY_INTERRUPT = 0x03,
	RUNNING = -2, /* or an exit status, or -1 with err */
	REPLAY_MS = 1000,
};

/* ---- connecting ------------------------------------------------------------------------------ */

static int make_path(const struct tty_session *s, bool tail, char path[API_PATH], struct err *err)
{
	char offset[48] = "";
	uint32_t rows, cols;
	size_t n;
	int more;

	terminal_size(&rows, &cols);
	if (client_path(path, API_PATH, err, "/v1/sessions/%s/tty", s->job->ref) < 0)
		return -1;
	n = strlen(path);
	if (*s->job->id && !tail && (s->knows_at || s->from_start))
		snprintf(offset, sizeof(offset), "&offset=%llu", (unsigned long long)s->at);
	more = snprintf(path + n, API_PATH - n, "?cols=%u&rows=%u%s%s%s%s", cols, rows,
			*s->job->id ? "&exec=" : "", s->job->id, offset,
			*s->job->id || !s->query ? "" : s->query);
	return more < (int)(API_PATH - n) ? 0 : err_set(err, ERR_INVALID, "path is too long");
}

/* If output at the offset was discarded, starts with the last that is kept. */
static int open_ws(struct tty_session *s, struct err *err)
{
	char path[API_PATH];

	if (make_path(s, false, path, err) < 0)
		return -1;
	if (client_ws_open(s->job->client, path, &s->ws, err) == 0)
		return 0;
	if (err->sys != ERANGE || make_path(s, true, path, err) < 0)
		return -1;
	return client_ws_open(s->job->client, path, &s->ws, err);
}

static void send_size(struct tty_session *s, uint32_t rows, uint32_t cols)
{
	char text[64];
	struct err ignored;
	int n = snprintf(text, sizeof(text), "{\"resize\":{\"cols\":%u,\"rows\":%u}}", cols, rows);

	if (s->ws)
		(void)client_ws_send(s->ws, true, text, (size_t)n, &ignored);
}

/* With redraw: the screen may be incomplete, or contain messages of lodge, and a change of size
 * makes programs redraw it. */
static void resize(struct tty_session *s, bool redraw)
{
	uint32_t rows, cols;

	terminal_size(&rows, &cols);
	if (redraw && rows > 1)
		send_size(s, rows - 1, cols);
	send_size(s, rows, cols);
}

int tty_session_open(struct tty_session *s, struct err *err)
{
	bool back = *s->job->id && !s->from_start;

	if (open_ws(s, err) < 0)
		return -1;
	if (back) {
		s->replay_ms = clock_wall_ms() + REPLAY_MS;
		resize(s, true);
	}
	if (!*s->job->id)
		snprintf(s->job->id, sizeof(s->job->id), "%s",
			 client_ws_header(s->ws, "Lodge-Exec") ?: "");
	return *s->job->id
		       ? 0
		       : err_set(err, ERR_UNAVAILABLE, "unexpected response: no Lodge-Exec header");
}

void tty_session_fini(struct tty_session *s)
{
	client_ws_close(s->ws);
}

/* ---- output ---------------------------------------------------------------------------------- */

/* {"exec_id", "offset"}, or {"exit": ...} */
static int handle_text(struct tty_session *s, const char *text, size_t len, struct err *err)
{
	auto_json json_t *v = json_loadb(text, len, 0, NULL);
	const json_t *offset = json_object_get(v, "offset"), *end = json_object_get(v, "exit");

	if (json_is_integer(offset)) {
		s->at = (uint64_t)json_integer_value(offset);
		s->knows_at = true;
	}
	if (!end)
		return RUNNING;
	if (!json_is_null(json_object_get(end, "exit_code")) ||
	    !json_is_null(json_object_get(end, "signal")))
		return exec_job_status(end);
	return err_set(err, ERR_NOT_FOUND,
		       "the sandbox ended while the command was running; its result is unknown");
}

/* Handles one message, so that a flood of output cannot delay input. Closes a broken connection. */
static int handle_message(struct tty_session *s, struct err *err)
{
	struct client_ws_message m;
	bool good = client_ws_read(s->ws, &m, err) == 0;
	int r;

	if (good && m.kind == CLIENT_WS_NOTHING)
		return RUNNING;
	if (good && m.kind == CLIENT_WS_BYTES) {
		r = file_write_all(STDOUT_FILENO, m.data, m.len);
		s->at += m.len;
		return r < 0 ? err_sys(err, -r, "standard output") : RUNNING;
	}
	if (good && m.kind == CLIENT_WS_TEXT)
		return handle_text(s, m.data, m.len, err);
	if (good)
		err_set(err, ERR_UNAVAILABLE, "%.200s",
			m.len ? m.data : "lodged closed the connection");
	client_ws_close(s->ws);
	s->ws = NULL;
	return RUNNING;
}

/* ---- input ----------------------------------------------------------------------------------- */

/* Removes detach keys: ctrl-] d detaches, and ctrl-] twice sends one ctrl-]. True: detach. The
 * output can be one byte longer than the input. */
static bool filter_keys(struct tty_session *s, char *buf, ssize_t *len)
{
	char out[PIECE + 1] = { 0 };
	ssize_t n = 0;

	for (ssize_t i = 0; i < *len; i++) {
		if (s->armed && buf[i] == 'd')
			return true;
		if (s->armed && buf[i] != KEY_DETACH)
			out[n++] = KEY_DETACH;
		if (!s->armed && buf[i] == KEY_DETACH) {
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

/* Keeps input until the connection is back; the bell rings if it does not fit. True: ctrl-c, which
 * detaches meanwhile. */
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

/* True: detach. */
static bool forward_input(struct tty_session *s)
{
	char buf[PIECE + 1];
	ssize_t n = read(STDIN_FILENO, buf, PIECE - 1);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return false;
	if (n <= 0) {
		s->eof = true;
		s->eof_ms = terminal_end_pause(0);
		if (s->tty)
			return true; /* the terminal is gone */
		n = (ssize_t)terminal_end_keys(s->in_line, buf);
	} else if (s->tty && !s->no_keys && filter_keys(s, buf, &n)) {
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
	for (size_t i = 0; i < ARRAY_LEN(caught); i++)
		sigaddset(&set, caught[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signals < 0 ? err_sys(err, errno, "signals") : 0;
}

/* True: detach. */
static bool handle_signals(struct tty_session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCONT && s->raw)
			(void)terminal_raw(STDIN_FILENO); /* a shell may have changed it */
		if (info.ssi_signo == SIGCONT || info.ssi_signo == SIGWINCH) {
			resize(s, false);
			continue;
		}
		s->detached_by = (int)info.ssi_signo;
		return true;
	}
	return false;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void repeat_eof(struct tty_session *s)
{
	char keys[TERMINAL_END_KEYS];

	if (!s->eof_ms)
		return;
	send_input(s, keys, terminal_end_keys(false, keys));
	s->eof_ms = terminal_end_pause(s->eof_ms);
}

/* Reads input only when it can be sent, so that sending never blocks, and a pipe only while
 * connected. ms: -1 waits forever. True:
 * detach. */
static bool wait_for_event(struct tty_session *s, int ms)
{
	bool reads = !s->eof && (s->ws || s->tty);
	struct pollfd p[] = { { .fd = s->signals, .events = POLLIN },
			      { .fd = s->ws ? client_ws_fd(s->ws) : -1, .events = POLLIN },
			      { .fd = reads ? STDIN_FILENO : -1, .events = POLLIN } };
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
		repeat_eof(s);
	if (p[0].revents && handle_signals(s))
		return true;
	if (!p[2].revents)
		return false;
	if (s->ws && poll(&out, 1, 0) == 0) {
		p[2].fd = -1;
		p[1].events = POLLIN | POLLOUT;
		return poll(p, 3, -1) < 0 && errno != EINTR;
	}
	return forward_input(s);
}

/* Continues at the same byte. 1: detach. -1: the error is permanent. */
static int reconnect(struct tty_session *s, struct err *err)
{
	int ms = retry_is_worth(err) ? retry_pause(&s->retry, err) : -1;

	if (ms < 0)
		return -1;
	if (wait_for_event(s, ms))
		return 1;
	if (open_ws(s, err) < 0)
		return retry_is_worth(err) ? 0 : -1;
	retry_over(&s->retry);
	resize(s, true);
	if (s->typed_len)
		send_input(s, s->typed, s->typed_len);
	s->typed_len = 0;
	return 0;
}

static int loop(struct tty_session *s, struct err *err)
{
	int r;

	err_set(err, ERR_UNAVAILABLE, "connection lost");
	for (;;) {
		r = s->ws ? handle_message(s, err) : RUNNING;
		if (r != RUNNING)
			return r;
		r = s->ws ? wait_for_event(s, -1) : reconnect(s, err);
		if (r < 0)
			return -1;
		if (r > 0) {
			s->detached = true;
			return s->detached_by ? 128 + s->detached_by : 0;
		}
	}
}

int tty_session_run(struct tty_session *s, struct err *err)
{
	int r;

	s->tty = isatty(STDIN_FILENO);
	if (catch_signals(s, err) < 0)
		return -1;
	s->raw = s->tty && terminal_raw(STDIN_FILENO);
	s->retry.raw = s->raw;
	r = loop(s, err);
	if (s->raw)
		terminal_restore();
	close(s->signals);
	return r;
}

int tty_session_job(struct exec_job *j, bool from_start, struct err *err)
{
	auto_fini(tty_session_fini) struct tty_session s = { .job = j, .from_start = from_start };
	int status;

	if (tty_session_open(&s, err) < 0)
		return -1;
	if (!from_start && isatty(STDIN_FILENO))
		fprintf(stderr, "lodge: " TTY_DETACH_KEYS " detaches and leaves it running\n");
	status = tty_session_run(&s, err);
	if (s.detached) {
		fputs("\r\n", stderr);
		exec_job_print_detached(j);
	}
	return status;
}
