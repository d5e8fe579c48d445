/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/process_tree.h"
#include "init/exec/subreaper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

int subreaper_read(int fd, struct subreaper_report *ret)
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

pid_t subreaper_start(struct spawn *s, pid_t *ret_subreaper, int *ret_fd)
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
	if (subreaper_read(ends[0], &r) != 1)
		return abandon(s, shim, ends[0], ETIMEDOUT);
	s->step = r.step;
	s->error = r.error;
	if (r.kind != SUBREAPER_STARTED)
		return abandon(s, shim, ends[0], r.error);
	*ret_subreaper = shim;
	*ret_fd = ends[0];
	return r.pid;
}
