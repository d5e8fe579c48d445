/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/process_end.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "init/exec/spare_shell.h"
#include "init/exec/agent_conn.h"
#include "init/exec/process.h"
#include "init/exec/process_stdin.h"
#include "init/exec/file_job.h"
#include "init/exec/event_loop.h"
#include "init/exec/output_pump.h"
#include "init/exec/process_tree.h"
#include "init/exec/subreaper.h"
#include "init/exec/process_usage.h"

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
	int fd;

	if (!has_failed(r))
		return false;
	fd = open("/tmp", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EDQUOT;
	close(fd);
	return false;
}

static void record_limit_hits(struct process *r)
{
	if (exec_cgroup_oom_kills(&r->cgroup) > r->oom_before)
		r->exit.hits |= AGENT_HIT_MEMORY;
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
	output_pump_progress(r, &r->exit.at);
	if (r->is_file_job)
		file_job_ended(r);
	r->exit_due = r->attached;
	r->unreported = 0;
	agent_conn_schedule_flush_mask(r->attached);
	exec_cgroup_drop_if_empty(&r->cgroup);
	spare_shell_schedule();
}

void process_end_if_drained(struct process *r)
{
	uint64_t now;

	if (r->state != PROCESS_ENDING)
		return;
	if (!output_pump_at_end(r)) {
		now = clock_mono_us();
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

static void handle_exit(struct process *r, int status, uint64_t cpu_us, uint64_t rss_bytes)
{
	uint64_t cgroup_us = exec_cgroup_counter(&r->cgroup, "cpu.stat", "usage_usec");

	r->state = PROCESS_ENDING;
	r->exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	r->exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	r->exit.duration_us = clock_mono_us() - r->started_us;
	r->exit.cpu_us = cgroup_us != UINT64_MAX && cgroup_us > cpu_us ? cgroup_us : cpu_us;
	r->exit.max_rss_bytes = rss_bytes;
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

void process_end_subreaper_ready(struct process *r)
{
	struct subreaper_report rep;
	int got;

	if (r->subreaper_fd < 0)
		return;
	got = subreaper_read(r->subreaper_fd, &rep);
	if (got == 0)
		return;
	event_loop_del(r->subreaper_fd);
	close(r->subreaper_fd);
	r->subreaper_fd = -1;
	if (got == 1 && rep.kind == SUBREAPER_ENDED)
		handle_exit(r, rep.status, rep.cpu_us, rep.max_rss_bytes);
	else if (r->state == PROCESS_RUNNING)
		handle_exit(r, SIGKILL, 0, 0); /* the subreaper was killed; handle_subreaper_exit()
						  kills its orphans */
}

static bool is_known(pid_t pid)
{
	return process_table_find_pid(pid) || spare_shell_owns_pid(pid);
}

static void handle_subreaper_exit(struct process *r, int status)
{
	process_end_subreaper_ready(r);
	r->subreaper_gone = true;
	/* A subreaper exits by itself only when it has no descendants. If a guest killed it, its
	 * orphans now belong to no command: kill them. */
	if (WIFSIGNALED(status))
		process_tree_kill_strays(is_known);
}

void process_end_reap(void)
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
		if (spare_shell_handle_exit(pid))
			continue;
		if (!r)
			continue;
		if (r->has_subreaper)
			handle_subreaper_exit(r, status);
		else
			handle_exit(r, status, process_usage_cpu_us(&ru),
				    process_usage_rss_bytes(&ru));
	}
	exec_cgroup_sweep();
}
