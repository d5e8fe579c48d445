/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "init/exec/spare_shell.h"
#include "init/exec/process_args.h"
#include "init/exec/agent_conn.h"
#include "init/exec/process_stdin.h"
#include "init/exec/event_loop.h"
#include "init/exec/output_pump.h"
#include "init/exec/process_tree.h"
#include "init/exec/process_stdio.h"
#include "init/exec/file_job.h"

struct process *process_new(uint64_t id, struct err *err)
{
	struct process *r;

	if (process_table_find(id)) {
		err_set(err, ERR_CONFLICT, "command %llu already exists", (unsigned long long)id);
		return NULL;
	}
	output_pump_trim();
	r = process_table_new(id);
	if (!r) {
		err_set(err, ERR_LIMIT, "%d commands are running, which is the maximum per sandbox",
			AGENT_EXECS_MAX);
		return NULL;
	}
	/* Before its first process exists: the kernel can kill that one before its exec returns. */
	r->oom_before = exec_cgroup_oom_kills();
	r->pids_before = exec_cgroup_forks_refused();
	return r;
}

int process_launch(struct process *r, char cgroup_prefix, struct spawn *s, struct err *err)
{
	auto_close int leaf = -1;

	if (init_binding.cgroup) {
		leaf = exec_cgroup_make(&r->cgroup, cgroup_prefix, r->id, err);
		if (leaf < 0)
			return -1;
	}
	s->cgroup_fd = leaf;
	if (init_binding.cgroup) {
		r->pid = s->worker ? guest_spawn_worker(s) : guest_spawn_program(s);
	} else {
		r->has_subreaper = true;
		r->pid = process_tree_start(s, &r->subreaper, &r->subreaper_fd);
	}
	return r->pid < 0 ? guest_spawn_explain(s, err) : 0;
}

void process_activate(struct process *r, uint32_t timeout_ms)
{
	r->started_ms = (uint64_t)clock_wall_ms();
	r->started_us = clock_mono_us();
	if (timeout_ms)
		r->deadline_us = r->started_us + (uint64_t)timeout_ms * 1000;
	output_pump_watch(r);
	if (r->subreaper_fd >= 0)
		event_loop_add(r->subreaper_fd, EVENT_SUBREAPER, process_table_index(r), EPOLLIN);
}

static void close_subreaper(struct process *r)
{
	if (r->subreaper_fd < 0)
		return;
	event_loop_del(r->subreaper_fd);
	close(r->subreaper_fd);
	r->subreaper_fd = -1;
}

void process_release(struct process *r)
{
	process_stdin_close(r);
	output_pump_close(r);
	close_subreaper(r);
	if (r->error_fd >= 0)
		close(r->error_fd);
	exec_cgroup_drop(&r->cgroup);
	process_table_free(r);
}

int process_launch_piped(struct process *r, char cgroup_prefix, struct spawn *s,
			 const struct agent_exec *m, struct err *err)
{
	int ret;

	if (process_stdio_open(r, s, m, err) < 0)
		return -1;
	ret = process_launch(r, cgroup_prefix, s, err);
	process_stdio_close_child(s);
	return ret;
}

static int start_new(struct process *r, struct process_args *c, struct err *err)
{
	struct spawn s = {
		.cred = &c->user.cred,
		.argv = c->argv,
		.envp = c->envp,
		.cwd = c->cwd,
		.home = c->user.home,
		.tty = (c->m.flags & AGENT_PTY) != 0,
		.bash = (c->m.flags & AGENT_BASH) != 0,
		.or_sh = (c->m.flags & (AGENT_BASH | AGENT_OR_SH)) != 0,
		.landlock = c->landlock,
		.landlock_required = (c->m.flags & AGENT_LANDLOCK_REQUIRED) != 0,
	};

	return process_launch_piped(r, 'x', &s, &c->m, err);
}

static int start_in_record(struct process *r, struct process_args *c, int *fds, size_t nfds,
			   struct err *err)
{
	const char *cwd = c->cwd[0] ? c->cwd : c->user.home;

	if (output_pump_open(r, fds, (int)nfds, c->m.log_bytes, err) < 0)
		return -1;
	r->flags = c->m.flags;
	process_table_set_argv(r, c->strings, c->m.argc);
	if (strlen(cwd) < INIT_CWD_SIZE)
		memcpy(process_table_cwd(r), cwd, strlen(cwd) + 1);
	r->used_spare_shell = spare_shell_take(r, c);
	return r->used_spare_shell ? 0 : start_new(r, c, err);
}

struct process *process_start(uint8_t conn, const void *msg, size_t len, int *fds, size_t nfds,
			      struct err *err)
{
	struct process_args c;
	struct process *r;

	if (process_args_parse(&c, msg, len, err) < 0 || !(r = process_new(c.m.exec, err))) {
		for (size_t i = 0; i < nfds; i++)
			close(fds[i]);
		return NULL;
	}
	if (c.m.flags & AGENT_ATTACHED)
		r->attached = (uint16_t)(1u << conn);
	if (start_in_record(r, &c, fds, nfds, err) < 0) {
		process_release(r);
		return NULL;
	}
	process_activate(r, c.m.timeout_ms);
	return r;
}

static bool is_ours(pid_t pid)
{
	for (struct process *r = NULL; (r = process_table_next(r));)
		if ((r->has_subreaper && !r->subreaper_gone && r->subreaper == pid) ||
		    (r->state == PROCESS_RUNNING && r->pid == pid))
			return true;
	return spare_shell_owns_pid(pid);
}

static int signal_tree(struct process *r, int signo)
{
	int n;

	if (r->cgroup.name[0])
		return exec_cgroup_signal(&r->cgroup, signo);
	if (!r->has_subreaper || r->subreaper_gone)
		return 0;
	n = process_tree_signal(r->subreaper, signo);
	if (n != 0)
		return n;
	/* No visible descendant, but the subreaper still waits for one. Either it is a worker of a
	 * file job, which /proc hides and which has no children; or the subreaper just killed a
	 * stopped worker and its report is on the way. */
	if (r->state == PROCESS_RUNNING)
		return kill(r->pid, signo) < 0 && errno != ESRCH ? -errno : 1;
	if (signo == SIGKILL)
		process_tree_kill_hidden(is_ours);
	return 0;
}

int process_signal(struct process *r, int signo, uint32_t scope, struct err *err)
{
	if (scope == AGENT_TO_TREE) {
		int n = signal_tree(r, signo);

		return n < 0 ? err_sys(err, -n, "signal %d", signo) : 0;
	}
	if (r->state != PROCESS_RUNNING)
		return err_set(err, ERR_NOT_FOUND, "command %llu has ended",
			       (unsigned long long)r->id);
	if (kill(scope == AGENT_TO_GROUP ? -r->pid : r->pid, signo) < 0)
		return err_sys(err, errno, "signal %d", signo);
	return 0;
}

int process_resize(struct process *r, uint32_t rows, uint32_t cols, struct err *err)
{
	struct winsize w = { .ws_row = (uint16_t)rows, .ws_col = (uint16_t)cols };

	if (!(r->flags & AGENT_PTY) || r->out[0].pipe < 0)
		return err_set(err, ERR_INVALID, "command %llu has no terminal",
			       (unsigned long long)r->id);
	if (ioctl(r->out[0].pipe, TIOCSWINSZ, &w) < 0)
		return err_sys(err, errno, "terminal size");
	return 0;
}

/* ---- end ----------------------------------------------------------------------------------- */

/* The file system of the working directory, or the root. A read-only one always looks full. */
static bool disk_is_full(const char *cwd)
{
	struct statfs fs;

	if (statfs(cwd[0] == '/' ? cwd : "/", &fs) < 0 || (fs.f_flags & ST_RDONLY))
		return false;
	return (fs.f_blocks && !fs.f_bavail) || (fs.f_files && !fs.f_ffree);
}

/* It failed, or wrote to stderr. */
static bool has_failed(const struct process *r)
{
	int n = 0;

	return r->exit.code || r->exit.signal || r->out[1].end ||
	       (r->out[1].pipe >= 0 && ioctl(r->out[1].pipe, FIONREAD, &n) == 0 && n > 0);
}

/* statfs() does not show quotas; an exhausted one also refuses an unnamed file. Tried only after a
 * failure, because it costs more than statfs(). */
static bool quota_is_full(const struct process *r)
{
	auto_close int fd = -1;

	if (!has_failed(r))
		return false;
	fd = open("/tmp", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	return fd < 0 && errno == EDQUOT;
}

static void record_oom_kill(struct process *r)
{
	if (exec_cgroup_oom_killed(&r->cgroup, r->oom_before))
		r->exit.hits |= AGENT_HIT_MEMORY;
}

static void record_limit_hits(struct process *r)
{
	record_oom_kill(r);
	if (exec_cgroup_forks_refused() > r->pids_before)
		r->exit.hits |= AGENT_HIT_PIDS;
	if (r->exit.signal == SIGXFSZ)
		r->exit.hits |= AGENT_HIT_FILE;
	if (disk_is_full(process_table_cwd(r)) || quota_is_full(r))
		r->exit.hits |= AGENT_HIT_DISK;
}

static void complete(struct process *r)
{
	r->state = PROCESS_DONE;
	r->ended_us = clock_mono_us();
	record_oom_kill(r); /* of a child that still had the output open */
	output_pump_progress(r, &r->exit.at);
	if (r->is_file_job)
		file_job_ended(r);
	r->exit_due = r->attached;
	r->unreported = 0;
	agent_conn_schedule_flush(r->attached);
	exec_cgroup_drop_if_empty(&r->cgroup);
	spare_shell_schedule();
}

void process_end_if_drained(struct process *r)
{
	if (r->state != PROCESS_ENDING)
		return;
	if (!output_pump_at_end(r)) {
		uint64_t now = clock_mono_us();

		if (now < r->grace_us)
			return;
		/* Wait for a slow attached reader, but not for a child that holds the pipe open.
		 * After a timeout don't wait at all: output that does not fit is dropped. */
		if (!output_pump_is_drained(r) && !(r->exit.hits & AGENT_HIT_TIME)) {
			r->grace_us = now + INIT_GRACE_MS * 1000ull;
			return;
		}
		if (!output_pump_is_drained(r))
			r->exit.hits |= AGENT_HIT_OUTPUT;
	}
	complete(r);
}

static void handle_exit(struct process *r, int status, const struct rusage *ru)
{
	uint64_t cpu_us = (uint64_t)(ru->ru_utime.tv_sec + ru->ru_stime.tv_sec) * 1000000u +
			  (uint64_t)(ru->ru_utime.tv_usec + ru->ru_stime.tv_usec);
	uint64_t cgroup_us = exec_cgroup_counter(&r->cgroup, "cpu.stat", "usage_usec");

	r->state = PROCESS_ENDING;
	r->exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	r->exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	r->exit.duration_us = clock_mono_us() - r->started_us;
	r->exit.cpu_us = cgroup_us != UINT64_MAX && cgroup_us > cpu_us ? cgroup_us : cpu_us;
	r->exit.max_rss_bytes = (uint64_t)ru->ru_maxrss * 1024u;
	record_limit_hits(r);
	/* A timeout ends all descendants, also those forked a moment ago. */
	if (r->exit.hits & AGENT_HIT_TIME)
		process_signal(r, SIGKILL, AGENT_TO_TREE, &(struct err){ 0 });
	process_stdin_close(r);
	output_pump_mark_end(r);
	output_pump_drain(r);
	r->grace_us = clock_mono_us() + INIT_GRACE_MS * 1000ull;
	process_end_if_drained(r);
}

void process_subreaper_ready(struct process *r)
{
	struct subreaper_report rep;
	int got;

	if (r->subreaper_fd < 0 || (got = process_tree_read_report(r->subreaper_fd, &rep)) == 0)
		return;
	close_subreaper(r);
	if (got == 1 && rep.kind == SUBREAPER_ENDED)
		handle_exit(r, rep.status, &rep.usage);
	else if (r->state == PROCESS_RUNNING) /* handle_subreaper_exit() kills its orphans */
		handle_exit(r, SIGKILL, &(struct rusage){ 0 });
}

static bool is_known(pid_t pid)
{
	return process_table_find_pid(pid) || spare_shell_owns_pid(pid);
}

static void handle_subreaper_exit(struct process *r, int status)
{
	process_subreaper_ready(r);
	r->subreaper_gone = true;
	/* A subreaper exits by itself only when it has no descendants. If a guest killed it, its
	 * orphans now belong to no command: kill them. */
	if (WIFSIGNALED(status))
		process_tree_kill_strays(is_known);
}

void process_reap(void)
{
	struct rusage ru;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED, &ru)) > 0) {
		struct process *r = process_table_find_pid(pid);

		if (WIFSTOPPED(status)) {
			/* A worker runs as the guest's user: a guest that stops it must not block
			 * the engine. */
			if (r && r->is_file_job)
				kill(pid, SIGKILL);
			continue;
		}
		if (spare_shell_handle_exit(pid) || !r)
			continue;
		if (r->has_subreaper)
			handle_subreaper_exit(r, status);
		else
			handle_exit(r, status, &ru);
	}
	exec_cgroup_sweep();
}

/* ---- timers -------------------------------------------------------------------------------- */

static void enforce_deadline(struct process *r, uint64_t now)
{
	r->exit.hits |= AGENT_HIT_TIME;
	signal_tree(r, SIGKILL);
	/* The tree can be incomplete (a fork in progress, a process that moved), so kill the
	 * command itself too. */
	if (r->state == PROCESS_RUNNING)
		kill(r->pid, SIGKILL);
	r->deadline_us = ++r->kills < INIT_KILLS_MAX ? now + 200 * 1000ull : 0;
}

/* A timed-out command is killed until all descendants are gone. Without a cgroup that can take
 * several passes. */
static bool has_deadline(const struct process *r)
{
	if (!r->deadline_us)
		return false;
	return r->state == PROCESS_RUNNING ||
	       ((r->exit.hits & AGENT_HIT_TIME) && r->has_subreaper && !r->subreaper_gone);
}

void process_run_timers(uint64_t now)
{
	for (struct process *r = NULL; (r = process_table_next(r));) {
		if (has_deadline(r) && now >= r->deadline_us)
			enforce_deadline(r, now);
		if (r->state == PROCESS_ENDING && now >= r->grace_us)
			process_end_if_drained(r);
	}
}

uint64_t process_next_timer(void)
{
	uint64_t next = UINT64_MAX;

	for (struct process *r = NULL; (r = process_table_next(r));) {
		if (has_deadline(r) && r->deadline_us < next)
			next = r->deadline_us;
		if (r->state == PROCESS_ENDING && r->grace_us < next)
			next = r->grace_us;
	}
	return next;
}
