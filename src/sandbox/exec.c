/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "sandbox/agent.h"
#include "sandbox/sandbox.h"

enum { LOG_DEFAULT = 1 << 20, PAGE = 4096, NSTREAMS = 2 };

struct stream {
	int fd; /* the log; -1: none */
	uint64_t start, end;
};

struct exec {
	struct agent *agent; /* borrowed; NULL once its connection ended */
	uint64_t id, log_bytes;
	enum exec_state state;
	bool armed;
	bool ended; /* EXITED or FAILED */
	bool hold, stdin_open, stdin_busy;
	pid_t pid;
	struct stream streams[NSTREAMS];
	struct exec_result result;
	struct err err;
	struct exec_ops ops;
	void *arg;
};

/* ---- the logs -------------------------------------------------------------------------------- */

/* Its size is sealed: lodge-init cannot make a read fail, nor the file grow. The pages it fills
 * are charged to the sandbox. */
static int log_new(uint64_t log_bytes, struct err *err)
{
	auto_close int fd = memfd_create("lodge-log", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return err_sys(err, errno, "log of the output");
	if (ftruncate(fd, (off_t)(AGENT_LOG_HEAD + log_bytes)) < 0)
		return err_sys(err, errno, "log of the output");
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return err_sys(err, errno, "seal the log of the output");
	return steal_fd(&fd);
}

static uint64_t log_size(uint64_t wanted)
{
	if (!wanted)
		return LOG_DEFAULT;
	return wanted > INT64_MAX / 4 ? INT64_MAX / 4 : (wanted + PAGE - 1) / PAGE * PAGE;
}

static ssize_t read_ring(const struct exec *x, int fd, uint64_t offset, char *buf, size_t size)
{
	size_t got = 0;

	while (got < size) {
		uint64_t at = (offset + got) % x->log_bytes;
		size_t want = size - got;
		ssize_t n;

		if (want > x->log_bytes - at)
			want = (size_t)(x->log_bytes - at);
		n = pread(fd, buf + got, want, (off_t)(AGENT_LOG_HEAD + at));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* What lodge-init may have overwritten while we read: the log's own head tells. */
static void refresh_start(struct stream *s)
{
	struct agent_log head;

	if (pread(s->fd, &head, sizeof(head), 0) != sizeof(head) || head.magic != AGENT_LOG_MAGIC)
		return;
	if (head.start > s->start)
		s->start = head.start < s->end ? head.start : s->end;
}

ssize_t exec_read(struct exec *x, enum exec_stream which, uint64_t *offset, void *buf, size_t size)
{
	struct stream *s = &x->streams[which];
	ssize_t n;

	for (;;) {
		if (s->fd < 0)
			return 0;
		if (*offset < s->start)
			*offset = s->start;
		if (*offset >= s->end || !size)
			return 0;
		if (size > s->end - *offset)
			size = (size_t)(s->end - *offset);
		n = read_ring(x, s->fd, *offset, buf, size);
		if (n < 0)
			return n;
		if (!x->hold)
			refresh_start(s);
		if (s->start <= *offset)
			break;
	}
	*offset += (uint64_t)n;
	return n;
}

uint64_t exec_start_offset(const struct exec *x, enum exec_stream s)
{
	return x->streams[s].start;
}

uint64_t exec_end(const struct exec *x, enum exec_stream s)
{
	return x->streams[s].end;
}

/* ---- what lodge-init says -------------------------------------------------------------------- */

static void finish(struct exec *x, enum exec_state state)
{
	if (x->ended)
		return;
	x->state = state;
	x->ended = true;
	x->stdin_open = false;
	x->stdin_busy = false;
	if (x->ops.on_end)
		x->ops.on_end(x, x->arg);
}

static bool advance(struct exec *x, struct stream *s, uint64_t start, uint64_t end)
{
	if (start > end || end - start > x->log_bytes || end < s->end || start < s->start)
		return false;
	s->start = start;
	s->end = end;
	return true;
}

/* A range that cannot be (it shrinks, or is larger than the log) is ignored: a hostile lodge-init
 * can then only hide output, which it could do anyway. */
static void progress(struct exec *x, const struct agent_progress *p)
{
	struct err ignored;
	bool out = advance(x, &x->streams[EXEC_OUT], p->out_start, p->out_end);
	bool err = advance(x, &x->streams[EXEC_ERR], p->err_start, p->err_end);

	if (!x->hold && (out || err))
		exec_consumed(x, exec_end(x, EXEC_OUT), exec_end(x, EXEC_ERR), &ignored);
}

static void take_exit(struct exec *x, const char *msg)
{
	struct agent_hdr hdr;
	struct agent_exit e;
	const char *text;

	if (*exec_ended(x))
		return;
	memcpy(&hdr, msg, sizeof(hdr));
	memcpy(&e, msg + sizeof(hdr), sizeof(e));
	if (e.code < -1 || e.code > 255 || e.signal < 0 || e.signal > 64 ||
	    (e.code == -1) != (e.signal != 0)) {
		err_set(&x->err, ERR_UNAVAILABLE,
			"the sandbox told an impossible end of a command");
		finish(x, EXEC_FAILED);
		return;
	}
	progress(x, &e.at);
	x->result = (struct exec_result){ .code = e.code,
					  .signal = e.signal,
					  .hits = e.hits,
					  .job_errno = e.job_errno > 0 ? e.job_errno : 0,
					  .duration_us = e.duration_us,
					  .cpu_us = e.cpu_us,
					  .max_rss_bytes = e.max_rss_bytes };
	text = agent_msg_string(msg, sizeof(hdr) + hdr.len, 0);
	if (text && *text) {
		err_set(&x->err, ERR_INTERNAL, "%s", text);
		agent_clean_text(x->err.msg);
		x->err.sys = x->result.job_errno;
	}
	finish(x, EXEC_EXITED);
}

static void on_event(void *arg, const void *msg, const struct err *err)
{
	struct exec *x = arg;
	struct agent_progress p;
	struct agent_hdr hdr;

	if (!msg) {
		x->agent = NULL;
		if (!x->ended)
			x->err = *err;
		finish(x, EXEC_FAILED);
		return;
	}
	memcpy(&hdr, msg, sizeof(hdr));
	if (hdr.type == AGENT_EXIT) {
		take_exit(x, msg);
		return;
	}
	memcpy(&p, (const char *)msg + sizeof(hdr), sizeof(p));
	progress(x, &p);
	if (x->ops.on_output)
		x->ops.on_output(x, x->arg);
}

static void on_started(void *arg, const void *msg, size_t len, int fd, const struct err *err)
{
	auto_close int unwanted __attribute__((unused)) = fd;
	struct exec *x = arg;
	struct agent_started st;
	struct agent_hdr hdr;

	(void)len;
	if (msg)
		memcpy(&hdr, msg, sizeof(hdr));
	if (!msg || hdr.type != AGENT_STARTED) {
		if (msg)
			err_set(&x->err, ERR_UNAVAILABLE, "the sandbox answered something else");
		else
			x->err = *err;
		finish(x, EXEC_FAILED);
		return;
	}
	memcpy(&st, (const char *)msg + sizeof(hdr), sizeof(st));
	x->pid = st.pid;
	x->armed = st.armed != 0;
	if (x->state == EXEC_STARTING)
		x->state = EXEC_RUNNING;
	if (x->ops.on_started)
		x->ops.on_started(x, x->arg);
}

/* ---- starting -------------------------------------------------------------------------------- */

static int exec_alloc(struct sandbox *sb, const struct exec_ops *ops, void *arg, struct exec **ret,
		      struct err *err)
{
	struct agent *a = sandbox_agent(sb);
	struct exec *x = calloc(1, sizeof(*x));

	if (!x)
		return err_sys(err, ENOMEM, "exec");
	x->agent = a;
	x->id = agent_next_exec(a);
	x->state = EXEC_STARTING;
	x->arg = arg;
	if (ops)
		x->ops = *ops;
	for (int i = 0; i < NSTREAMS; i++)
		x->streams[i].fd = -1;
	if (agent_listen(a, x->id, on_event, x, err) < 0) {
		free(x);
		return -1;
	}
	*ret = x;
	return 0;
}

static size_t count_strings(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

static void add_string(FILE *f, const char *s)
{
	fwrite(s ? s : "", 1, (s ? strlen(s) : 0) + 1, f);
}

static int pack(const struct exec_spec *spec, struct agent_exec *m, char **ret, size_t *ret_len,
		struct err *err)
{
	FILE *f = open_memstream(ret, ret_len);

	if (!f)
		return err_sys(err, errno, "exec");
	m->argc = spec->text ? 1 : (uint32_t)count_strings(spec->argv);
	m->envc = (uint32_t)count_strings(spec->env);
	if (spec->text)
		add_string(f, spec->text);
	for (uint32_t i = 0; !spec->text && i < m->argc; i++)
		add_string(f, spec->argv[i]);
	for (uint32_t i = 0; i < m->envc; i++)
		add_string(f, spec->env[i]);
	add_string(f, spec->cwd);
	add_string(f, spec->user);
	if (fclose(f) != 0)
		return err_sys(err, ENOMEM, "exec");
	return 0;
}

static uint32_t flags_of(const struct exec_spec *spec)
{
	return AGENT_ATTACHED | (spec->text ? AGENT_BASH : 0u) | (spec->pty ? AGENT_PTY : 0u) |
	       (spec->stdin_open ? AGENT_STDIN_OPEN : 0u) | (spec->merge ? AGENT_MERGE : 0u) |
	       (spec->login ? AGENT_LOGIN : 0u);
}

static int open_logs(struct exec *x, size_t n, int fds[NSTREAMS], struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		x->streams[i].fd = log_new(x->log_bytes, err);
		if (x->streams[i].fd < 0)
			return -1;
		fds[i] = x->streams[i].fd;
	}
	return 0;
}

int exec_arm(struct sandbox *sb, const struct exec_spec *like, struct err *err)
{
	struct exec_spec spec = { .env = like->env, .cwd = like->cwd, .user = like->user };
	struct agent_exec m = { .flags = like->merge ? AGENT_BASH | AGENT_MERGE : AGENT_BASH };
	auto_free char *strings = NULL;
	size_t len = 0;

	if (pack(&spec, &m, &strings, &len, err) < 0)
		return -1;
	return agent_call(sandbox_agent(sb), AGENT_ARM,
			  (struct agent_part[]){ { &m, sizeof(m) }, { strings, len } }, 2, NULL, 0,
			  AGENT_OK, NULL, err);
}

int exec_begin(struct sandbox *sb, const struct exec_spec *spec, struct exec **ret, struct err *err)
{
	auto_call(exec_free) struct exec *x = NULL;
	auto_free char *strings = NULL;
	size_t len = 0, nlogs = spec->pty || spec->merge ? 1 : NSTREAMS;
	struct agent_exec m = { .flags = flags_of(spec),
				.timeout_ms = spec->timeout_ms,
				.rows = spec->rows,
				.cols = spec->cols };
	int fds[NSTREAMS];

	if (!spec->text && (!spec->argv || !spec->argv[0]))
		return err_set(err, ERR_INVALID, "no command");
	if (exec_alloc(sb, spec->ops, spec->arg, &x, err) < 0)
		return -1;
	x->hold = spec->hold;
	x->stdin_open = spec->stdin_open;
	x->log_bytes = log_size(spec->log_bytes);
	m.exec = x->id;
	m.log_bytes = x->log_bytes;
	if (pack(spec, &m, &strings, &len, err) < 0 || open_logs(x, nlogs, fds, err) < 0)
		return -1;
	if (agent_send(x->agent, AGENT_EXEC,
		       (struct agent_part[]){ { &m, sizeof(m) }, { strings, len } }, 2, fds, nlogs,
		       on_started, x, err) < 0)
		return -1;
	*ret = steal_ptr(&x);
	return 0;
}

int exec_begin_job(struct sandbox *sb, struct agent_job job, const char *user, const char *path,
		   int fd, const struct exec_ops *ops, void *arg, struct exec **ret,
		   struct err *err)
{
	auto_call(exec_free) struct exec *x = NULL;

	if (exec_alloc(sb, ops, arg, &x, err) < 0)
		return -1;
	job.exec = x->id;
	user = user ? user : "";
	if (agent_send(x->agent, AGENT_JOB,
		       (struct agent_part[]){ { &job, sizeof(job) },
					      { user, strlen(user) + 1 },
					      { path, strlen(path) + 1 } },
		       3, &fd, fd >= 0 ? 1 : 0, on_started, x, err) < 0)
		return -1;
	*ret = steal_ptr(&x);
	return 0;
}

void exec_free(struct exec *x)
{
	struct agent_ref ref;
	struct err ignored;

	if (!x)
		return;
	if (x->agent) {
		ref.exec = x->id;
		agent_unlisten(x->agent, x->id);
		agent_cancel(x->agent, x);
		if (x->state == EXEC_EXITED || x->state == EXEC_RUNNING)
			agent_send(x->agent, x->ended ? AGENT_FORGET : AGENT_DETACH,
				   (struct agent_part[]){ { &ref, sizeof(ref) } }, 1, NULL, 0, NULL,
				   NULL, &ignored);
	}
	for (int i = 0; i < NSTREAMS; i++)
		if (x->streams[i].fd >= 0)
			close(x->streams[i].fd);
	free(x);
}

/* ---- looking and steering -------------------------------------------------------------------- */

uint64_t exec_id(const struct exec *x)
{
	return x->id;
}

enum exec_state exec_state(const struct exec *x)
{
	return x->state;
}

bool exec_was_armed(const struct exec *x)
{
	return x->armed;
}

pid_t exec_pid(const struct exec *x)
{
	return x->pid;
}

const struct exec_result *exec_result(const struct exec *x)
{
	return &x->result;
}

const struct err *exec_error(const struct exec *x)
{
	return &x->err;
}

static int tell(struct exec *x, enum agent_type type, const void *body, size_t len, agent_fn *fn,
		struct err *err)
{
	if (!x->agent)
		return err_set(err, ERR_UNAVAILABLE, "the sandbox is gone");
	return agent_send(x->agent, type, (struct agent_part[]){ { body, len } }, 1, NULL, 0, fn, x,
			  err);
}

int exec_consumed(struct exec *x, uint64_t out, uint64_t err_offset, struct err *err)
{
	struct agent_offsets o = { .exec = x->id, .out = out, .err = err_offset };

	return tell(x, AGENT_CONSUMED, &o, sizeof(o), NULL, err);
}

static void on_stdin(void *arg, const void *msg, size_t len, int fd, const struct err *err)
{
	auto_close int unwanted __attribute__((unused)) = fd;
	struct exec *x = arg;

	(void)len;
	(void)err;
	x->stdin_busy = false;
	if (!msg) /* it closed its end, or is gone: there is nobody left to feed */
		x->stdin_open = false;
}

int exec_stdin(struct exec *x, const void *data, size_t len, bool eof, struct err *err)
{
	struct agent_stdin m = { .exec = x->id, .eof = eof, .len = (uint32_t)len };

	if (len > AGENT_DATA_MAX)
		return err_set(err, ERR_INVALID, "more than %d bytes of input at once",
			       AGENT_DATA_MAX);
	if (!x->stdin_open || !x->agent)
		return err_set(err, ERR_CONFLICT, "the command does not read its input");
	if (x->stdin_busy)
		return err_set(err, ERR_CONFLICT, "the last input was not taken yet");
	if (agent_send(x->agent, AGENT_STDIN,
		       (struct agent_part[]){ { &m, sizeof(m) }, { data, len } }, 2, NULL, 0,
		       on_stdin, x, err) < 0)
		return -1;
	x->stdin_busy = true;
	if (eof)
		x->stdin_open = false;
	return 0;
}

bool exec_stdin_is_busy(const struct exec *x)
{
	return x->stdin_busy;
}

bool exec_stdin_is_closed(const struct exec *x)
{
	return !x->stdin_open;
}

int exec_signal(struct exec *x, int signo, enum agent_scope scope, struct err *err)
{
	struct agent_signal m = { .exec = x->id, .signo = signo, .scope = scope };

	return tell(x, AGENT_SIGNAL, &m, sizeof(m), NULL, err);
}

int exec_resize(struct exec *x, uint32_t rows, uint32_t cols, struct err *err)
{
	struct agent_resize m = { .exec = x->id, .rows = rows, .cols = cols };

	return tell(x, AGENT_RESIZE, &m, sizeof(m), NULL, err);
}

const char *exec_hit_name(unsigned hit)
{
	static const struct {
		unsigned hit;
		const char *name;
	} names[] = {
		{ AGENT_HIT_TIME, "TIMEOUT" },	  { AGENT_HIT_MEMORY, "LIMIT_MEMORY" },
		{ AGENT_HIT_PIDS, "LIMIT_PIDS" }, { AGENT_HIT_OUTPUT, "LIMIT_OUTPUT" },
		{ AGENT_HIT_DISK, "LIMIT_DISK" }, { AGENT_HIT_FILE, "LIMIT_FILE" },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].hit == hit)
			return names[i].name;
	return NULL;
}

struct agent *exec_agent(const struct exec *x)
{
	return x->agent;
}

const bool *exec_ended(const struct exec *x)
{
	return &x->ended;
}
