/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/local/local_run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/core/human.h"
#include "cli/core/limit_note.h"
#include "cli/core/options.h"
#include "cli/core/terminal.h"
#include "sandbox/agent_client.h"
#include "sandbox/guest_exec_log.h"
#include "sandbox/guest_exec_sync.h"
#include "sandbox/keeper_client.h"
#include "sandbox/template/template_json.h"

enum {
	CHUNK = 128 * 1024,
	GRACE_MS = 5000, /* between a forwarded SIGTERM and SIGKILL */
	LATE_MS = 5000, /* how late lodge-init may enforce the timeout */
	NSTREAMS = 2,
	FD_AGENT = 0,
	FD_KEEPER,
	FD_SIGNAL,
	FD_INPUT,
	FD_OUT,
	FD_ERR,
	NFDS,
};

/* ---- sinks ----------------------------------------------------------------------------------- */

/* Writes to standard output or error without blocking, so that a stalled reader cannot keep lodge
 * from handling signals. O_NONBLOCK cannot be set: other processes share the file description. */
struct output_sink {
	int fd; /* what to poll for POLLOUT */
	int own; /* a file description of its own; -1: none */
	bool socket;
	size_t chunk; /* maximum that one write takes without blocking */
	bool dead; /* EPIPE: the reader closed it */
};

static void output_sink_init(struct output_sink *s, int fd)
{
	struct stat st;
	char path[32];

	*s = (struct output_sink){ .fd = fd, .own = -1, .chunk = SSIZE_MAX };
	if (fstat(fd, &st) < 0)
		return;
	s->socket = S_ISSOCK(st.st_mode);
	if (S_ISFIFO(st.st_mode)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		s->own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		if (s->own >= 0)
			s->fd = s->own;
	}
	/* poll() guarantees space for PIPE_BUF bytes in a pipe or terminal, not more */
	if ((S_ISFIFO(st.st_mode) && s->own < 0) || S_ISCHR(st.st_mode))
		s->chunk = PIPE_BUF;
}

static void output_sink_fini(struct output_sink *s)
{
	if (s->own >= 0)
		close(s->own);
	s->own = -1;
}

/* Bytes taken, or -errno; -EAGAIN: poll first. */
static ssize_t output_sink_write(struct output_sink *s, const void *data, size_t len)
{
	struct pollfd p = { .fd = s->fd, .events = POLLOUT };
	ssize_t n;

	if (len > s->chunk)
		len = s->chunk;
	if (s->chunk == PIPE_BUF && poll(&p, 1, 0) == 0)
		return -EAGAIN;
	n = s->socket ? send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL)
		      : write(s->fd, data, len);
	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
		s->dead = true;
	return n < 0 ? -errno : n;
}

/* ---- output ---------------------------------------------------------------------------------- */

struct loop {
	struct local_run *r;
	int signals;
	bool input_eof, in_line;
	int64_t end_at; /* when the end of the input is typed again; INT64_MAX: never */
	int end_ms; /* the pause before that */
	struct output_sink sinks[NSTREAMS];
	bool blocked[NSTREAMS];
	uint64_t at[NSTREAMS], acked[NSTREAMS]; /* bytes written, and reported to lodge-init */
	int64_t deadline; /* monotonic ms; INT64_MAX: none */
	int64_t kill_at; /* 0: none */
	char buf[CHUNK];
};

static void stop(struct loop *l)
{
	struct err ignored;

	guest_exec_kill(l->r->x, &ignored);
}

/* Kills the command, and drops output that its reader does not take: it could not end before. */
static void give_up(struct loop *l)
{
	for (int s = 0; s < NSTREAMS; s++) {
		l->sinks[s].dead |= l->blocked[s];
		l->blocked[s] = false;
	}
	stop(l);
}

static void handle_write_error(struct loop *l, int s, int error)
{
	l->sinks[s].dead = true;
	if (s == GUEST_EXEC_ERR) /* the command goes on without a reader of its errors */
		return;
	if (error == EPIPE || error == ECONNRESET)
		l->r->pipe_broken = true;
	else if (!l->r->err.code)
		err_sys(&l->r->err, error, "write to stdout");
	stop(l);
}

static void write_stream(struct loop *l, int s)
{
	struct guest_exec *x = l->r->x;

	for (;;) {
		uint64_t next = l->at[s];
		ssize_t n = guest_exec_read(x, (enum guest_exec_stream)s, &next, l->buf,
					    sizeof(l->buf)),
			w;

		if (n <= 0)
			return;
		if (l->sinks[s].dead) {
			l->at[s] = next;
			continue;
		}
		w = output_sink_write(&l->sinks[s], l->buf, (size_t)n);
		l->blocked[s] = w == -EAGAIN;
		if (w == -EAGAIN)
			return;
		if (w < 0)
			handle_write_error(l, s, (int)-w);
		else
			l->at[s] = next - (uint64_t)n + (uint64_t)w;
	}
}

static void write_output(struct loop *l)
{
	struct err ignored;

	if (l->r->collect)
		return;
	for (int s = 0; s < NSTREAMS; s++)
		write_stream(l, s);
	if (l->at[0] == l->acked[0] && l->at[1] == l->acked[1])
		return;
	memcpy(l->acked, l->at, sizeof(l->acked));
	if (!*guest_exec_ended(l->r->x))
		guest_exec_consumed(l->r->x, l->at[GUEST_EXEC_OUT], l->at[GUEST_EXEC_ERR],
				    &ignored);
}

static bool all_written(const struct loop *l)
{
	for (int s = 0; s < NSTREAMS; s++)
		if (!l->r->collect && l->at[s] < guest_exec_end(l->r->x, (enum guest_exec_stream)s))
			return false;
	return true;
}

/* ---- input and signals ----------------------------------------------------------------------- */

static bool reads_input(const struct loop *l)
{
	return l->r->feed && !l->input_eof && guest_exec_state(l->r->x) == GUEST_EXEC_RUNNING &&
	       !guest_exec_stdin_is_busy(l->r->x) && !guest_exec_stdin_is_closed(l->r->x);
}

/* A terminal in the sandbox has no end of input, so that is typed, until the command ends. */
static void type_end(struct loop *l)
{
	char keys[TERMINAL_END_KEYS];
	struct err ignored;

	if (!guest_exec_stdin_is_busy(l->r->x))
		guest_exec_stdin(l->r->x, keys, terminal_end_keys(l->in_line, keys), false,
				 &ignored);
	l->in_line = false;
	l->end_ms = terminal_end_pause(l->end_ms);
	l->end_at = clock_mono_ms() + l->end_ms;
}

static void read_input(struct loop *l)
{
	ssize_t n = read(STDIN_FILENO, l->buf, AGENT_DATA_MAX);
	struct err ignored;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	l->input_eof = n <= 0;
	if (n > 0)
		l->in_line = l->buf[n - 1] != '\n';
	if (n <= 0 && l->r->tty)
		type_end(l);
	else
		guest_exec_stdin(l->r->x, l->buf, n > 0 ? (size_t)n : 0, n <= 0, &ignored);
}

static void resize(struct loop *l)
{
	uint32_t rows, cols;
	struct err ignored;

	terminal_size(&rows, &cols);
	guest_exec_resize(l->r->x, rows, cols, &ignored);
}

/* Forwards a signal to the command. If it should end the command, everything is killed after a
 * grace period, or at once when the signal comes again. */
static void forward(struct loop *l, int signo)
{
	bool ends = signo == SIGTERM || signo == SIGHUP || signo == SIGINT;
	struct err ignored;

	if (ends && (l->kill_at || *guest_exec_ended(l->r->x))) {
		give_up(l);
		return;
	}
	guest_exec_signal(l->r->x, signo, AGENT_TO_GROUP, &ignored);
	if (signo == SIGTERM && l->r->tty) /* a shell on a terminal ends with that, not with TERM */
		guest_exec_signal(l->r->x, SIGHUP, AGENT_TO_GROUP, &ignored);
	if (signo == SIGTERM || signo == SIGHUP)
		l->kill_at = clock_mono_ms() + GRACE_MS;
	else if (signo == SIGINT)
		l->kill_at = INT64_MAX; /* the command may handle it; a second one kills it */
}

static void read_signals(struct loop *l)
{
	struct signalfd_siginfo info;

	while (read(l->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGWINCH)
			resize(l);
		else
			forward(l, (int)info.ssi_signo);
	}
}

static int catch_signals(struct loop *l, sigset_t *old)
{
	static const int caught[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH
	};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(caught); i++)
		if (caught[i] != SIGWINCH || l->r->tty)
			sigaddset(&set, caught[i]);
	sigprocmask(SIG_BLOCK, &set, old);
	l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return l->signals < 0 ? err_sys(&l->r->err, errno, "signalfd") : 0;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void fill_poll(struct loop *l, struct pollfd p[NFDS])
{
	struct agent *a = guest_exec_agent(l->r->x);

	p[FD_AGENT] = (struct pollfd){ a ? agent_fd(a) : -1, (short)(a ? agent_events(a) : 0), 0 };
	p[FD_KEEPER] = (struct pollfd){ keeper_client_fd(l->r->keeper), POLLIN, 0 };
	p[FD_SIGNAL] = (struct pollfd){ l->signals, POLLIN, 0 };
	p[FD_INPUT] = (struct pollfd){ reads_input(l) ? STDIN_FILENO : -1, POLLIN, 0 };
	p[FD_OUT] = (struct pollfd){ l->blocked[0] ? l->sinks[0].fd : -1, POLLOUT, 0 };
	p[FD_ERR] = (struct pollfd){ l->blocked[1] ? l->sinks[1].fd : -1, POLLOUT, 0 };
}

static int time_left(const struct loop *l)
{
	int64_t next = l->kill_at && l->kill_at < l->deadline ? l->kill_at : l->deadline;
	int64_t left;

	next = l->end_at < next ? l->end_at : next;
	if (next == INT64_MAX)
		return -1;
	left = next - clock_mono_ms();
	return left <= 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

/* False: it is no use waiting any longer. */
static bool check_times(struct loop *l)
{
	int64_t now = clock_mono_ms();

	if (now >= l->end_at)
		type_end(l);
	if (l->kill_at && l->kill_at != INT64_MAX && now >= l->kill_at) {
		l->kill_at = INT64_MAX;
		give_up(l);
	}
	if (now < l->deadline || *guest_exec_ended(l->r->x))
		return true;
	/* It cannot end before its last output found room, which is for our own reader to make. */
	if (l->blocked[GUEST_EXEC_OUT] || l->blocked[GUEST_EXEC_ERR]) {
		l->deadline = now + LATE_MS;
		return true;
	}
	l->r->late = true;
	return false;
}

static int one_round(struct loop *l)
{
	struct pollfd p[NFDS];
	struct err err;

	fill_poll(l, p);
	if (poll(p, NFDS, time_left(l)) < 0) {
		if (errno == EINTR)
			return 0;
		return err_sys(&l->r->err, errno, "poll");
	}
	if (p[FD_SIGNAL].revents)
		read_signals(l);
	if (p[FD_AGENT].revents)
		agent_dispatch(guest_exec_agent(l->r->x), &err); /* the exec hears of its end */
	if (p[FD_KEEPER].revents && keeper_client_dispatch(l->r->keeper, &err) < 0) {
		l->r->err = err;
		return -1;
	}
	if (p[FD_INPUT].revents && reads_input(l))
		read_input(l);
	return check_times(l) ? 0 : -1;
}

static int run_to_end(struct loop *l)
{
	while (!*guest_exec_ended(l->r->x) || !all_written(l)) {
		if (one_round(l) < 0)
			return -1;
		write_output(l);
	}
	if (guest_exec_state(l->r->x) == GUEST_EXEC_FAILED) {
		l->r->err = *guest_exec_error(l->r->x);
		return -1;
	}
	return l->r->err.code ? -1 : 0;
}

int local_run_loop(struct local_run *r)
{
	auto_free struct loop *l = calloc(1, sizeof(*l));
	sigset_t old;
	int n;

	if (!l)
		return err_sys(&r->err, ENOMEM, "run");
	l->r = r;
	if (catch_signals(l, &old) < 0)
		return -1;
	output_sink_init(&l->sinks[0], STDOUT_FILENO);
	output_sink_init(&l->sinks[1], STDERR_FILENO);
	l->end_at = INT64_MAX;
	l->deadline = r->timeout_ms ? clock_mono_ms() + r->timeout_ms + LATE_MS : INT64_MAX;
	n = run_to_end(l);
	output_sink_fini(&l->sinks[0]);
	output_sink_fini(&l->sinks[1]);
	close(l->signals);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return n;
}

/* ---- the result ------------------------------------------------------------------------------ */

enum { HITS = 6, SIGNAL_BASE = 128 };

int local_run_start_status(const struct err *err, const char *command)
{
	size_t n = strlen(command);

	/* errors about the command begin with its name; a missing directory or user is another
	 * failure */
	if (strncmp(err->msg, command, n) != 0 || err->msg[n] != ':')
		return CLI_EXIT_FAILED;
	if (err->code == ERR_NOT_FOUND)
		return CLI_EXIT_NOT_FOUND;
	if (err->code == ERR_DENIED || err->code == ERR_INVALID)
		return CLI_EXIT_NOT_EXECUTABLE;
	return CLI_EXIT_FAILED;
}

static unsigned hits_of(const struct local_run *r)
{
	unsigned hits = guest_exec_result(r->x)->hits;

	if (r->oom)
		hits |= AGENT_HIT_MEMORY;
	if (r->disk_full)
		hits |= AGENT_HIT_DISK;
	if (r->late)
		hits |= AGENT_HIT_TIME;
	if (r->collect && (guest_exec_start_offset(r->x, GUEST_EXEC_OUT) ||
			   guest_exec_start_offset(r->x, GUEST_EXEC_ERR)))
		hits |= AGENT_HIT_OUTPUT;
	return hits;
}

static int status_of(const struct local_run *r)
{
	const struct guest_exec_result *res = guest_exec_result(r->x);

	if (r->late || res->hits & AGENT_HIT_TIME)
		return CLI_EXIT_TIMEOUT;
	if (r->oom)
		return SIGNAL_BASE + SIGKILL;
	if (r->err.code)
		return CLI_EXIT_FAILED;
	if (r->pipe_broken)
		return SIGNAL_BASE + SIGPIPE;
	return res->signal ? SIGNAL_BASE + res->signal : res->code;
}

/* ---- json ------------------------------------------------------------------------------------ */

static void put_end(struct json_out *j, const struct local_run *r)
{
	const struct guest_exec_result *res = guest_exec_result(r->x);
	bool killed = res->signal || r->late || r->oom;

	if (killed)
		json_out_null(j, "exit_code");
	else
		json_out_i64(j, "exit_code", res->code);
	if (killed)
		json_out_i64(j, "signal", res->signal ? res->signal : SIGKILL);
	else
		json_out_null(j, "signal");
}

static void put_streams(struct json_out *j, const struct guest_exec_output *o)
{
	bool text = json_is_utf8(o->out, o->out_len) && json_is_utf8(o->err, o->err_len);

	json_out_str(j, "encoding", text ? "utf-8" : "base64");
	if (text) {
		json_out_bytes(j, "stdout", o->out, o->out_len);
		json_out_bytes(j, "stderr", o->err, o->err_len);
	} else {
		json_out_base64(j, "stdout", o->out, o->out_len);
		json_out_base64(j, "stderr", o->err, o->err_len);
	}
	json_out_u64(j, "stdout_bytes", o->out_total);
	json_out_u64(j, "stderr_bytes", o->err_total);
	json_out_bool(j, "truncated", o->out_total != o->out_len || o->err_total != o->err_len);
}

static void put_usage(struct json_out *j, const struct local_run *r)
{
	const struct guest_exec_result *res = guest_exec_result(r->x);

	json_out_u64(j, "duration_ms", res->duration_us / 1000);
	json_out_object(j, "usage");
	json_out_u64(j, "cpu_ms", res->cpu_us / 1000);
	json_out_u64(j, "max_rss_bytes", res->max_rss_bytes);
	json_out_end(j);
	json_out_str(j, "source", sandbox_source(r->sb) == KEEPER_SOURCE_POOL ? "pool" : "cold");
	json_out_u64(j, "ready_ms", (sandbox_ready_us(r->sb) + 999) / 1000);
}

static void put_hits(struct json_out *j, unsigned hits)
{
	json_out_bool(j, "timed_out", hits & AGENT_HIT_TIME);
	json_out_bool(j, "oom_killed", hits & AGENT_HIT_MEMORY);
	json_out_array(j, "limits");
	for (unsigned i = 0; i < HITS; i++)
		if (hits & 1u << i)
			json_out_str(j, NULL, guest_exec_hit_name(1u << i));
	json_out_end(j);
}

static int report_json(const struct local_run *r)
{
	const struct template t = { .limits = r->limits, .limits_set = UINT32_MAX };
	struct guest_exec_output o = { 0 };
	struct json_out j;
	auto_free char *text = NULL;
	struct err err;

	if (r->err.code && !r->oom && !r->late)
		return cli_option_fail(status_of(r), &r->err);
	if (guest_exec_collect(r->x, &o, &err) < 0)
		return cli_option_fail(CLI_EXIT_FAILED, &err);
	json_out_init(&j, 6 * (o.out_len + o.err_len) + 4096);
	json_out_object(&j, NULL);
	put_end(&j, r);
	put_streams(&j, &o);
	put_hits(&j, hits_of(r));
	template_put_not_enforced(&j, LIMITS_NOT_ENFORCED, &r->enforcement, r->store, &t);
	put_usage(&j, r);
	json_out_end(&j);
	guest_exec_output_fini(&o);
	text = json_out_take(&j, NULL);
	if (!text) {
		err_sys(&err, ENOMEM, "result");
		return cli_option_fail(CLI_EXIT_FAILED, &err);
	}
	human_put_json(text, stdout);
	return status_of(r);
}

int local_run_report(const struct local_run *r)
{
	unsigned hits = hits_of(r);

	if (r->collect)
		return report_json(r);
	fflush(stdout);
	for (unsigned i = 0; i < HITS; i++)
		if (hits & 1u << i)
			limit_note_print(guest_exec_hit_name(1u << i), &r->limits, r->timeout_ms);
	if (r->err.code && !r->oom && !r->late)
		return cli_option_fail(status_of(r), &r->err);
	return status_of(r);
}
