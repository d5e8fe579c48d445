/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/process_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"

enum { PIDS_MAX = 65536 };

struct proc_entry {
	pid_t pid, parent;
	bool below;
};

struct proc_list {
	size_t n;
	struct proc_entry procs[PIDS_MAX];
};

/* False for a process that is gone or a zombie. */
static bool read_parent(int proc, pid_t pid, pid_t *ret)
{
	char path[32], text[512], *at, state;
	auto_close int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%d/stat", (int)pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = 0;
	at = strrchr(text, ')'); /* the process name before it can contain any byte */
	if (!at || strlen(at) < 5)
		return false;
	state = at[2];
	*ret = (pid_t)strtol(at + 4, NULL, 10);
	return state != 'Z' && state != 'X';
}

static void add_processes(int proc, struct proc_list *l, const char *buf, long n)
{
	for (long at = 0; at < n;) {
		const struct dirent *d = (const void *)(buf + at); /* as getdents64() has it */
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);

		at += d->d_reclen;
		if (pid <= 1 || l->n == PIDS_MAX || pid == getpid())
			continue;
		l->procs[l->n].pid = pid;
		l->procs[l->n].below = false;
		if (read_parent(proc, pid, &l->procs[l->n].parent))
			l->n++;
	}
}

static int read_processes(struct proc_list *l)
{
	auto_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(8) char buf[4096];
	long n;

	l->n = 0;
	if (proc < 0)
		return -errno;
	while ((n = syscall(SYS_getdents64, proc, buf, sizeof(buf))) > 0)
		add_processes(proc, l, buf, n);
	return n < 0 ? -errno : 0;
}

static bool is_below(const struct proc_list *l, pid_t pid, pid_t root)
{
	if (pid == root)
		return true;
	for (size_t i = 0; i < l->n; i++)
		if (l->procs[i].pid == pid)
			return l->procs[i].below;
	return false;
}

/* Marks generation by generation; returns how many are marked. */
static int mark_descendants(struct proc_list *l, pid_t root)
{
	int found = 0, before;

	do {
		before = found;
		for (size_t i = 0; i < l->n; i++) {
			struct proc_entry *p = &l->procs[i];

			if (!p->below && is_below(l, p->parent, root)) {
				p->below = true;
				found++;
			}
		}
	} while (found != before);
	return found;
}

static int signal_marked(const struct proc_list *l, int signo)
{
	int sent = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->procs[i].below && kill(l->procs[i].pid, signo) == 0)
			sent++;
	return sent;
}

/* Children of lodge-init that are not known, and their descendants. */
static int mark_strays(struct proc_list *l, bool (*is_known)(pid_t pid))
{
	int found = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct proc_entry *p = &l->procs[i];

		if (p->parent == getpid() && !is_known(p->pid)) {
			p->below = true;
			found++;
		}
	}
	return found + mark_descendants(l, 0);
}

static int stop_and_kill(struct proc_list *l, pid_t root, bool (*is_known)(pid_t pid))
{
	int found, stopped = -1, r;

	/* A stopped process cannot fork: when a pass finds no new one, the list is complete. */
	for (int pass = 0; pass < 64; pass++) {
		r = read_processes(l);
		if (r < 0)
			return r;
		found = is_known ? mark_strays(l, is_known) : mark_descendants(l, root);
		if (found == stopped)
			break;
		stopped = signal_marked(l, SIGSTOP);
	}
	return signal_marked(l, SIGKILL);
}

/* Mapped on demand, because it is large and rarely needed. */
static struct proc_list *map_list(void)
{
	struct proc_list *l =
		mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return l == MAP_FAILED ? NULL : l;
}

void process_tree_kill_strays(bool (*is_known)(pid_t pid))
{
	struct proc_list *l = map_list();

	if (!l)
		return;
	stop_and_kill(l, 0, is_known);
	munmap(l, sizeof(*l));
}

static long pid_max(void)
{
	uint64_t max = 32768;

	(void)file_number_at(AT_FDCWD, "/proc/sys/kernel/pid_max", "", &max);
	return (long)max;
}

/* The kernel assigns pids in order: a new one is the highest, unless the counter wrapped. */
static long highest_pid(void)
{
	static pid_t highest;
	pid_t probe = guest_spawn_fork(-1);

	if (probe == 0)
		_exit(0);
	if (probe < 0)
		return pid_max();
	waitpid(probe, NULL, 0);
	if (probe < highest)
		return pid_max();
	return highest = probe;
}

/* Under hidepid /proc does not list an undumpable process, but kill(pid, 0) finds it. */
void process_tree_kill_hidden(bool (*is_ours)(pid_t pid))
{
	auto_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long limit = highest_pid();
	char path[32];

	for (pid_t pid = 2; pid <= limit && proc >= 0; pid++) {
		if (kill(pid, 0) < 0 && errno == ESRCH)
			continue;
		snprintf(path, sizeof(path), "%d/stat", (int)pid);
		if (pid != getpid() && !is_ours(pid) && faccessat(proc, path, F_OK, 0) < 0)
			kill(pid, SIGKILL);
	}
}

int process_tree_signal(pid_t root, int signo)
{
	struct proc_list *l = map_list();
	int r;

	if (!l)
		return -errno;
	if (signo == SIGKILL) {
		r = stop_and_kill(l, root, NULL);
	} else {
		r = read_processes(l);
		if (r == 0) {
			mark_descendants(l, root);
			r = signal_marked(l, signo);
		}
	}
	munmap(l, sizeof(*l));
	return r;
}

/* ---- the subreaper --------------------------------------------------------------------------- */

static void send_report(int fd, const struct subreaper_report *r)
{
	/* Atomic: smaller than PIPE_BUF. */
	(void)!write(fd, r, sizeof(*r));
}

/* Stays until the last descendant is gone, so that lodge-init can find them. */
static void __attribute__((noreturn)) wait_for_descendants(int fd, pid_t main_pid, bool is_worker)
{
	struct subreaper_report r = { .kind = SUBREAPER_ENDED, .pid = main_pid };

	for (;;) {
		pid_t pid = wait4(-1, &r.status, is_worker ? WUNTRACED : 0, &r.usage);

		if (pid < 0 && errno == ECHILD)
			_exit(0);
		if (pid != main_pid)
			continue;
		if (WIFSTOPPED(r.status)) /* see process_reap() */
			kill(pid, SIGKILL);
		else
			send_report(fd, &r);
	}
}

static void __attribute__((noreturn)) run_subreaper(struct spawn *s, int fd)
{
	pid_t pid;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_NAME, "lodge-shim");
	pid = s->worker ? guest_spawn_worker(s) : guest_spawn_program(s);
	send_report(fd, &(struct subreaper_report){ .kind = pid < 0 ? SUBREAPER_FAILED
								    : SUBREAPER_STARTED,
						    .pid = pid,
						    .step = s->step,
						    .error = s->error });
	if (pid < 0)
		_exit(1);
	/* Close the command's pipes: end of file must not wait for this process. */
	if (fd != 3) {
		dup3(fd, 3, O_CLOEXEC);
		fd = 3;
	}
	syscall(SYS_close_range, 4, ~0u, 0);
	wait_for_descendants(fd, pid, s->worker != NULL);
}

int process_tree_read_report(int fd, struct subreaper_report *ret)
{
	ssize_t n;

	do
		n = read(fd, ret, sizeof(*ret));
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(*ret))
		return 1;
	return n < 0 && errno == EAGAIN ? 0 : -1;
}

static pid_t abandon(struct spawn *s, pid_t shim, int fd, int error)
{
	process_tree_signal(shim, SIGKILL);
	kill(shim, SIGKILL);
	while (waitpid(shim, NULL, 0) < 0 && errno == EINTR)
		;
	close(fd);
	if (!s->error) {
		s->step = GUEST_SPAWN_STUCK;
		s->error = error;
	}
	return -1;
}

pid_t process_tree_start(struct spawn *s, pid_t *ret_subreaper, int *ret_fd)
{
	struct subreaper_report r;
	struct pollfd p;
	int ends[2];
	pid_t shim;

	s->step = GUEST_SPAWN_CLONE;
	s->error = 0;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return s->error = errno, -1;
	shim = guest_spawn_fork(s->cgroup_fd);
	if (shim == 0)
		run_subreaper(s, ends[1]);
	if (shim < 0)
		s->error = errno;
	close(ends[1]);
	if (shim < 0) {
		close(ends[0]);
		return -1;
	}
	p = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	while (poll(&p, 1, 2 * INIT_EXEC_WAIT_MS) < 0 && errno == EINTR)
		;
	if (process_tree_read_report(ends[0], &r) != 1)
		return abandon(s, shim, ends[0], ETIMEDOUT);
	s->step = r.step;
	s->error = r.error;
	if (r.kind != SUBREAPER_STARTED)
		return abandon(s, shim, ends[0], r.error);
	*ret_subreaper = shim;
	*ret_fd = ends[0];
	return r.pid;
}
