/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/guest_exec_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sandbox/agent_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/guest_exec_log.h"

/* ---- events of lodge-init ------------------------------------------------------------------ */

static void end_exec(struct guest_exec *x, enum guest_exec_state state)
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

static bool advance_stream(struct guest_exec *x, struct stream *s, uint64_t start, uint64_t end)
{
	if (start > end || end - start > x->log_bytes || end < s->end || start < s->start ||
	    end > INT64_MAX)
		return false;
	s->start = start;
	s->end = end;
	return true;
}

/* Ignores an invalid range (one that shrinks, or is larger than the log): a hostile lodge-init can
 * then only hide output, which it can do anyway. */
bool guest_exec_advance(struct guest_exec *x, const struct agent_progress *p)
{
	bool out = advance_stream(x, &x->streams[GUEST_EXEC_OUT], p->out_start, p->out_end);
	bool err = advance_stream(x, &x->streams[GUEST_EXEC_ERR], p->err_start, p->err_end);

	return out || err;
}

static void update_progress(struct guest_exec *x, const struct agent_progress *p)
{
	struct err ignored;

	if (guest_exec_advance(x, p) && !x->hold)
		guest_exec_consumed(x, guest_exec_end(x, GUEST_EXEC_OUT),
				    guest_exec_end(x, GUEST_EXEC_ERR), &ignored);
}

void guest_exec_set_result(struct guest_exec *x, const struct agent_exit *e, const char *text)
{
	if (x->ended)
		return;
	if (e->code < -1 || e->code > 255 || e->signal < 0 || e->signal > 64 ||
	    (e->code == -1) != (e->signal != 0)) {
		agent_protocol_error(&x->err, "invalid exit status");
		end_exec(x, GUEST_EXEC_FAILED);
		return;
	}
	update_progress(x, &e->at);
	x->result = (struct guest_exec_result){ .code = e->code,
						.signal = e->signal,
						.hits = e->hits,
						.job_errno = e->job_errno > 0 ? e->job_errno : 0,
						.duration_us = e->duration_us,
						.cpu_us = e->cpu_us,
						.max_rss_bytes = e->max_rss_bytes };
	if (text && *text) {
		err_set(&x->err, ERR_INTERNAL, "%s", text);
		agent_clean_text(x->err.msg);
		x->err.sys = x->result.job_errno;
	}
	end_exec(x, GUEST_EXEC_EXITED);
}

static void on_event(void *arg, const void *msg, const struct err *err)
{
	struct guest_exec *x = arg;
	struct agent_progress p;
	struct agent_hdr hdr;
	struct agent_exit e;

	if (!msg) {
		x->agent = NULL;
		if (!x->ended)
			x->err = *err;
		end_exec(x, GUEST_EXEC_FAILED);
		return;
	}
	if (x->adopting) /* AGENT_LOGR has the same content, and the logs */
		return;
	memcpy(&hdr, msg, sizeof(hdr));
	if (hdr.type == AGENT_EXIT) {
		memcpy(&e, (const char *)msg + sizeof(hdr), sizeof(e));
		guest_exec_set_result(x, &e, agent_msg_string(msg, sizeof(hdr) + hdr.len, 0));
		return;
	}
	if (x->ended)
		return;
	memcpy(&p, (const char *)msg + sizeof(hdr), sizeof(p));
	update_progress(x, &p);
	if (x->ops.on_output)
		x->ops.on_output(x, x->arg);
}

/* The sandbox reached a limit of its own: callers must not take it for a shortage of the host. */
static void fail_start(struct guest_exec *x, const struct err *why)
{
	x->err = *why;
	if (why->code == ERR_LIMIT && why->sys == EAGAIN) {
		err_set(&x->err, ERR_LIMIT,
			"process limit of the sandbox reached (limit: pids); retry when processes "
			"have ended");
		x->err.sys = GUEST_EXEC_NO_PIDS;
	}
	if (why->code == ERR_LIMIT && why->sys == ENOMEM) {
		err_set(&x->err, ERR_LIMIT,
			"out of memory: the sandbox cannot start another process (limit: "
			"memory_bytes)");
		x->err.sys = GUEST_EXEC_NO_MEMORY;
	}
	end_exec(x, GUEST_EXEC_FAILED);
}

static void on_started(void *arg, const void *msg, size_t len, int *fds, const struct err *err)
{
	struct guest_exec *x = arg;
	struct agent_started st;
	struct agent_hdr hdr;

	(void)len, (void)fds;
	if (!msg) {
		fail_start(x, err);
		return;
	}
	memcpy(&hdr, msg, sizeof(hdr));
	if (hdr.type != AGENT_STARTED) {
		agent_protocol_error(&x->err, "unexpected reply type");
		end_exec(x, GUEST_EXEC_FAILED);
		return;
	}
	memcpy(&st, (const char *)msg + sizeof(hdr), sizeof(st));
	x->pid = st.pid;
	x->used_spare_shell = st.used_spare_shell != 0;
	if (x->state == GUEST_EXEC_STARTING)
		x->state = GUEST_EXEC_RUNNING;
	if (x->ops.on_started)
		x->ops.on_started(x, x->arg);
}

/* ---- starting -------------------------------------------------------------------------------- */

int guest_exec_alloc(struct sandbox *sb, uint64_t id, const struct guest_exec_ops *ops, void *arg,
		     struct guest_exec **ret, struct err *err)
{
	struct agent *a = sandbox_agent(sb);
	struct guest_exec *x = calloc(1, sizeof(*x));

	if (!x)
		return err_sys(err, ENOMEM, "exec");
	x->agent = a;
	x->id = id;
	x->state = GUEST_EXEC_STARTING;
	x->arg = arg;
	if (ops)
		x->ops = *ops;
	for (int i = 0; i < GUEST_EXEC_STREAMS; i++)
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

static int pack_strings(const struct guest_exec_spec *spec, struct agent_exec *m, char **ret,
			size_t *ret_len, struct err *err)
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
	if (spec->landlock)
		add_string(f, spec->landlock);
	if (fclose(f) != 0)
		return err_sys(err, ENOMEM, "exec");
	return 0;
}

static uint32_t agent_flags(const struct guest_exec_spec *spec)
{
	return AGENT_ATTACHED | (spec->text ? AGENT_BASH : 0u) | (spec->pty ? AGENT_PTY : 0u) |
	       (spec->stdin_open ? AGENT_STDIN_OPEN : 0u) | (spec->merge ? AGENT_MERGE : 0u) |
	       (spec->login ? AGENT_LOGIN : 0u) | (spec->landlock ? AGENT_LANDLOCK : 0u) |
	       (spec->landlock && spec->landlock_required ? AGENT_LANDLOCK_REQUIRED : 0u) |
	       (spec->or_sh ? AGENT_OR_SH : 0u);
}

static int open_logs(struct guest_exec *x, size_t n, int fds[GUEST_EXEC_STREAMS], struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		x->streams[i].fd = guest_exec_log_new(x->log_bytes, err);
		if (x->streams[i].fd < 0)
			return -1;
		fds[i] = x->streams[i].fd;
	}
	return 0;
}

int guest_exec_set_spare_shell(struct sandbox *sb, const struct guest_exec_spec *like,
			       struct err *err)
{
	struct guest_exec_spec spec = { .env = like->env, .cwd = like->cwd, .user = like->user };
	struct agent_exec m = { .flags = like->merge ? AGENT_BASH | AGENT_MERGE : AGENT_BASH };
	auto_free char *strings = NULL;
	struct agent_part parts[2] = { { &m, sizeof(m) } };

	if (pack_strings(&spec, &m, &strings, &parts[1].len, err) < 0)
		return -1;
	parts[1].data = strings;
	return agent_send(sandbox_agent(sb), AGENT_SPARE_SHELL, parts, 2, NULL, 0, NULL, NULL, err);
}

int guest_exec_begin(struct sandbox *sb, const struct guest_exec_spec *spec,
		     struct guest_exec **ret, struct err *err)
{
	auto_call(guest_exec_free) struct guest_exec *x = NULL;
	auto_free char *strings = NULL;
	size_t len = 0, nlogs = spec->pty || spec->merge ? 1 : GUEST_EXEC_STREAMS;
	struct agent_exec m = { .flags = agent_flags(spec),
				.timeout_ms = spec->timeout_ms,
				.rows = spec->rows,
				.cols = spec->cols };
	int fds[GUEST_EXEC_STREAMS];

	if (!spec->text && (!spec->argv || !spec->argv[0]))
		return err_set(err, ERR_INVALID, "command is empty");
	if (guest_exec_alloc(sb, agent_next_exec(sandbox_agent(sb)), spec->ops, spec->arg, &x,
			     err) < 0)
		return -1;
	x->hold = spec->hold;
	x->pty = spec->pty;
	x->stdin_open = spec->stdin_open;
	x->log_bytes = guest_exec_log_size(spec->log_bytes);
	m.exec = x->id;
	m.log_bytes = x->log_bytes;
	if (pack_strings(spec, &m, &strings, &len, err) < 0 || open_logs(x, nlogs, fds, err) < 0)
		return -1;
	if (agent_send(x->agent, AGENT_EXEC,
		       (struct agent_part[]){ { &m, sizeof(m) }, { strings, len } }, 2, fds, nlogs,
		       on_started, x, err) < 0)
		return -1;
	*ret = steal_ptr(&x);
	return 0;
}

int guest_exec_begin_job(struct sandbox *sb, struct agent_job job, const char *user,
			 const char *path, int fd, const struct guest_exec_ops *ops, void *arg,
			 struct guest_exec **ret, struct err *err)
{
	auto_call(guest_exec_free) struct guest_exec *x = NULL;

	if (guest_exec_alloc(sb, agent_next_exec(sandbox_agent(sb)), ops, arg, &x, err) < 0)
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

static int send_request(struct guest_exec *x, enum agent_type type, const void *body, size_t len,
			agent_fn *fn, struct err *err)
{
	if (!x->agent)
		return err_set(err, ERR_UNAVAILABLE, AGENT_LOST);
	return agent_send(x->agent, type, (struct agent_part[]){ { body, len } }, 1, NULL, 0, fn, x,
			  err);
}

/* Always detach: a reader that is gone must not block the command. */
void guest_exec_free_keep(struct guest_exec *x)
{
	struct agent_ref ref;
	struct err ignored;

	if (!x)
		return;
	ref.exec = x->id;
	if (x->agent) {
		agent_unlisten(x->agent, x->id);
		agent_cancel(x->agent, x);
		if (x->state != GUEST_EXEC_FAILED && !x->forgotten)
			send_request(x, AGENT_DETACH, &ref, sizeof(ref), NULL, &ignored);
	}
	for (int i = 0; i < GUEST_EXEC_STREAMS; i++)
		close_autop(&x->streams[i].fd);
	free(x);
}

void guest_exec_free(struct guest_exec *x)
{
	struct err ignored;

	if (x && x->state == GUEST_EXEC_EXITED)
		guest_exec_forget(x, &ignored);
	guest_exec_free_keep(x);
}

int guest_exec_forget(struct guest_exec *x, struct err *err)
{
	struct agent_ref ref = { .exec = x->id };

	if (x->forgotten)
		return 0;
	if (x->state != GUEST_EXEC_EXITED)
		return err_set(err, ERR_CONFLICT, "command %llu is still running",
			       (unsigned long long)x->id);
	if (send_request(x, AGENT_FORGET, &ref, sizeof(ref), NULL, err) < 0)
		return -1;
	x->forgotten = true;
	return 0;
}

/* ---- state and control ------------------------------------------------------------------ */

uint64_t guest_exec_id(const struct guest_exec *x)
{
	return x->id;
}

enum guest_exec_state guest_exec_state(const struct guest_exec *x)
{
	return x->state;
}

pid_t guest_exec_pid(const struct guest_exec *x)
{
	return x->pid;
}

const struct guest_exec_result *guest_exec_result(const struct guest_exec *x)
{
	return &x->result;
}

const struct err *guest_exec_error(const struct guest_exec *x)
{
	return &x->err;
}

void guest_exec_hold(struct guest_exec *x)
{
	x->hold = true;
}

int guest_exec_consumed(struct guest_exec *x, uint64_t out, uint64_t err_offset, struct err *err)
{
	struct agent_offsets o = { .exec = x->id, .out = out, .err = err_offset };

	return send_request(x, AGENT_CONSUMED, &o, sizeof(o), NULL, err);
}

static void on_stdin(void *arg, const void *msg, size_t len, int *fds, const struct err *err)
{
	struct guest_exec *x = arg;

	(void)len, (void)fds, (void)err;
	x->stdin_busy = false;
	if (!msg) /* the command closed its input or ended */
		x->stdin_open = false;
}

int guest_exec_stdin(struct guest_exec *x, const void *data, size_t len, bool eof, struct err *err)
{
	struct agent_stdin m = { .exec = x->id, .eof = eof, .len = (uint32_t)len };

	if (len > AGENT_DATA_MAX)
		return err_set(err, ERR_INVALID, "at most %d bytes of input per call",
			       AGENT_DATA_MAX);
	if (!x->stdin_open || !x->agent)
		return err_set(err, ERR_CONFLICT,
			       "cannot write to the command: its input is closed");
	if (x->stdin_busy)
		return err_set(err, ERR_CONFLICT, "command has not read its previous input yet");
	if (agent_send(x->agent, AGENT_STDIN,
		       (struct agent_part[]){ { &m, sizeof(m) }, { data, len } }, 2, NULL, 0,
		       on_stdin, x, err) < 0)
		return -1;
	x->stdin_busy = true;
	if (eof)
		x->stdin_open = false;
	return 0;
}

int guest_exec_probe_stdin(struct guest_exec *x, struct err *err)
{
	struct agent_stdin m = { .exec = x->id };

	if (send_request(x, AGENT_STDIN, &m, sizeof(m), on_stdin, err) < 0)
		return -1;
	x->stdin_open = x->stdin_busy = true;
	return 0;
}

bool guest_exec_stdin_is_busy(const struct guest_exec *x)
{
	return x->stdin_busy;
}

bool guest_exec_stdin_is_closed(const struct guest_exec *x)
{
	return !x->stdin_open;
}

int guest_exec_signal(struct guest_exec *x, int signo, enum agent_scope scope, struct err *err)
{
	struct agent_signal m = { .exec = x->id, .signo = signo, .scope = scope };

	return send_request(x, AGENT_SIGNAL, &m, sizeof(m), NULL, err);
}

int guest_exec_resize(struct guest_exec *x, uint32_t rows, uint32_t cols, struct err *err)
{
	struct agent_resize m = { .exec = x->id, .rows = rows, .cols = cols };

	if (!x->pty)
		return err_set(err, ERR_CONFLICT, "command has no terminal");
	return send_request(x, AGENT_RESIZE, &m, sizeof(m), NULL, err);
}

const char *guest_exec_hit_name(unsigned hit)
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

struct agent *guest_exec_agent(const struct guest_exec *x)
{
	return x->agent;
}

const bool *guest_exec_ended(const struct guest_exec *x)
{
	return &x->ended;
}
