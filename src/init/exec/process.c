/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "init/exec/spare_shell.h"
#include "init/exec/exec_args.h"
#include "init/exec/agent_conn.h"
#include "init/exec/exec_stdin.h"
#include "init/exec/event_loop.h"
#include "init/exec/output_pump.h"
#include "init/exec/subreaper.h"
#include "init/exec/exec_stdio.h"

struct rec *exec_new(uint64_t id, struct err *err)
{
	struct rec *r;

	if (table_find(id)) {
		err_set(err, ERR_CONFLICT, "command %llu is there already", (unsigned long long)id);
		return NULL;
	}
	pump_trim();
	r = table_new(id);
	if (!r)
		err_set(err, ERR_LIMIT, "%d commands are running", AGENT_EXECS_MAX);
	return r;
}

int exec_launch(struct rec *r, char leaf_prefix, struct spawn *s, struct err *err)
{
	auto_close int leaf = -1;

	if (init_binding.cgroup) {
		leaf = leaf_make(&r->leaf, leaf_prefix, r->id, err);
		if (leaf < 0)
			return -1;
	}
	s->leaf_fd = leaf;
	if (init_binding.cgroup) {
		r->pid = s->worker ? spawn_worker(s) : spawn_program(s);
	} else {
		r->shimmed = true;
		r->pid = shim_start(s, &r->shim, &r->shim_fd);
	}
	return r->pid < 0 ? spawn_explain(s, err) : 0;
}

void exec_begin(struct rec *r, uint32_t timeout_ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	r->started_ms = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	r->started_us = init_now_us();
	if (timeout_ms)
		r->deadline_us = r->started_us + (uint64_t)timeout_ms * 1000;
	r->oom_before = leaf_oom_kills(&r->leaf);
	r->pids_before = leaf_forks_refused();
	for (int i = 0; i < 2; i++)
		pump_watch(r, i);
	if (r->shim_fd >= 0)
		loop_add(r->shim_fd, LOOP_SHIM, table_index(r), EPOLLIN);
}

static void close_all(struct rec *r)
{
	input_close(r);
	pump_close(r);
	if (r->shim_fd >= 0) {
		loop_del(r->shim_fd);
		close(r->shim_fd);
	}
	if (r->error_fd >= 0)
		close(r->error_fd);
	r->shim_fd = r->error_fd = -1;
	leaf_drop(&r->leaf);
}

void exec_undo(struct rec *r)
{
	close_all(r);
	table_free(r);
}

void exec_forget(struct rec *r)
{
	/* What it left running goes on without anybody to tell about it. */
	close_all(r);
	table_free(r);
}

static int start_fresh(struct rec *r, struct command *c, struct err *err)
{
	struct stdio io;
	struct spawn s = {
		.cred = &c->user.cred,
		.argv = c->argv,
		.envp = c->envp,
		.cwd = c->cwd,
		.home = c->user.home,
		.text_fd = -1,
		.keep = { -1, -1 },
		.tty = (c->m.flags & AGENT_PTY) != 0,
		.bash = (c->m.flags & AGENT_BASH) != 0,
		.or_sh = (c->m.flags & (AGENT_BASH | AGENT_OR_SH)) != 0,
		.only = c->only,
		.only_must = (c->m.flags & AGENT_ONLY_MUST) != 0,
	};
	int ret;

	if (stdio_open(&io, &c->user.cred, c->m.flags, c->m.rows, c->m.cols, err) < 0)
		return -1;
	memcpy(s.stdio, io.child, sizeof(s.stdio));
	ret = exec_launch(r, 'x', &s, err);
	stdio_close_child(&io);
	r->in.fd = io.in;
	r->in.tty = s.tty;
	r->out[0].pipe = io.out[0];
	r->out[1].pipe = io.out[1];
	return ret;
}

static int start_record(struct rec *r, struct command *c, int *fds, size_t nfds, uint32_t *armed,
			struct err *err)
{
	if (pump_open(r, fds, (int)nfds, c->m.log_bytes, err) < 0)
		return -1;
	r->flags = c->m.flags;
	table_describe(r, c->strings, c->m.argc);
	table_set_cwd(r, c->cwd[0] ? c->cwd : c->user.home);
	*armed = arm_take(r, c);
	return *armed ? 0 : start_fresh(r, c, err);
}

int exec_start(uint8_t conn, const void *msg, size_t len, int *fds, size_t nfds,
	       struct agent_started *ret, struct err *err)
{
	struct command c;
	struct rec *r;
	uint32_t armed = 0;

	if (command_parse(&c, msg, len, err) < 0 || !(r = exec_new(c.m.exec, err))) {
		for (size_t i = 0; i < nfds; i++)
			close(fds[i]);
		return -1;
	}
	if (c.m.flags & AGENT_ATTACHED)
		r->attached = (uint16_t)(1u << conn);
	if (start_record(r, &c, fds, nfds, &armed, err) < 0) {
		exec_undo(r);
		return -1;
	}
	exec_begin(r, c.m.timeout_ms);
	*ret = (struct agent_started){ .exec = r->id, .pid = r->pid, .armed = armed };
	return 0;
}

static bool is_ours(pid_t pid)
{
	for (uint32_t i = 0; i < table_end(); i++) {
		struct rec *r = table_at(i);

		if (r && ((r->shimmed && !r->shim_gone && r->shim == pid) ||
			  (r->state == REC_RUNNING && r->pid == pid)))
			return true;
	}
	return arm_is(pid);
}

static int signal_tree(struct rec *r, int signo)
{
	int n;

	if (r->leaf.name[0])
		return leaf_signal(&r->leaf, signo);
	if (!r->shimmed || r->shim_gone)
		return 0;
	n = tree_signal(r->shim, signo);
	if (n != 0)
		return n;
	/* Nothing to be seen, and yet the shim still waits for somebody. A worker of ours is as
	 * invisible as it is unable to have children; or the shim, which ends one that is stopped,
	 * was quicker, and its report is on the way. */
	if (r->state == REC_RUNNING)
		return kill(r->pid, signo) < 0 && errno != ESRCH ? -errno : 1;
	if (signo == SIGKILL)
		tree_kill_hidden(is_ours);
	return 0;
}

int exec_signal(struct rec *r, int signo, uint32_t scope, struct err *err)
{
	int n;

	if (scope == AGENT_TO_TREE) {
		n = signal_tree(r, signo);
		if (n < 0)
			return err_sys(err, -n, "signal %d", signo);
		return 0;
	}
	if (r->state != REC_RUNNING)
		return err_set(err, ERR_NOT_FOUND, "command %llu has ended",
			       (unsigned long long)r->id);
	if (kill(scope == AGENT_TO_GROUP ? -r->pid : r->pid, signo) < 0)
		return err_sys(err, errno, "signal %d", signo);
	return 0;
}

int exec_resize(struct rec *r, uint32_t rows, uint32_t cols, struct err *err)
{
	struct winsize w = { .ws_row = (uint16_t)rows, .ws_col = (uint16_t)cols };

	if (!(r->flags & AGENT_PTY) || r->out[0].pipe < 0)
		return err_set(err, ERR_INVALID, "command %llu has no terminal",
			       (unsigned long long)r->id);
	if (ioctl(r->out[0].pipe, TIOCSWINSZ, &w) < 0)
		return err_sys(err, errno, "size of the terminal");
	return 0;
}

/* ---- timers -------------------------------------------------------------------------------- */

static void deadline(struct rec *r, uint64_t now)
{
	r->exit.hits |= AGENT_HIT_TIME;
	signal_tree(r, SIGKILL);
	/* Somebody may have stood between the tree and its end: a fork in flight, a process that
	 * was moved. The group's leader at least is known. */
	if (r->state == REC_RUNNING)
		kill(r->pid, SIGKILL);
	r->deadline_us = ++r->kills < INIT_KILLS_MAX ? now + 200 * 1000ull : 0;
}

/* Timed out is a command until all it started is gone, which without a cgroup takes looking. */
static bool has_deadline(const struct rec *r)
{
	if (!r->deadline_us)
		return false;
	return r->state == REC_RUNNING ||
	       ((r->exit.hits & AGENT_HIT_TIME) && r->shimmed && !r->shim_gone);
}

void exec_timers(uint64_t now)
{
	for (uint32_t i = 0; i < table_end(); i++) {
		struct rec *r = table_at(i);

		if (!r)
			continue;
		if (has_deadline(r) && now >= r->deadline_us)
			deadline(r, now);
		if (r->state == REC_ENDING && now >= r->grace_us)
			exec_output_moved(r);
	}
}

uint64_t exec_next_timer(void)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < table_end(); i++) {
		struct rec *r = table_at(i);

		if (!r)
			continue;
		if (has_deadline(r) && r->deadline_us < next)
			next = r->deadline_us;
		if (r->state == REC_ENDING && r->grace_us < next)
			next = r->grace_us;
	}
	return next;
}
