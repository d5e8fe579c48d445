/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/helper_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "runtime/linux_calls.h"

static const struct {
	int nice, ioprio;
} ranks[] = {
	[CHILD_AWAITED] = { 0, 2 << 13 | 4 }, /* best effort, the default */
	[CHILD_LOW] = { 5, 2 << 13 | 7 },
	[CHILD_IDLE] = { 10, 3 << 13 },
};

enum {
	HOLD_MS = 1000, /* by then, files that the keeper removes are removed */
};

static pid_t holders[CHILD_HOLDERS_MAX];

static void reset_signals(void)
{
	struct sigaction how = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int s = 1; s < 32; s++)
		(void)sigaction(s, &how, NULL);
	how.sa_handler = SIG_IGN; /* a reader that exits is a failed write (EPIPE) */
	(void)sigaction(SIGPIPE, &how, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void sort_fds(int *fds, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t j = i; j > 0 && fds[j] < fds[j - 1]; j--) {
			int t = fds[j];

			fds[j] = fds[j - 1];
			fds[j - 1] = t;
		}
}

static void close_others(const int *keep, size_t n)
{
	int fds[CHILD_FDS_MAX];
	unsigned first = 0;

	memcpy(fds, keep, n * sizeof(*fds));
	sort_fds(fds, n);
	for (size_t i = 0; i < n; i++) {
		if ((unsigned)fds[i] > first)
			(void)sys_close_range(first, (unsigned)fds[i] - 1, 0);
		first = (unsigned)fds[i] + 1;
	}
	(void)sys_close_range(first, ~0u, 0);
}

pid_t helper_child_fork(const int *fds, size_t n, enum child_rank rank)
{
	pid_t keeper = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	close_others(fds, n); /* first: a child that fails must not hold the keeper's locks */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != keeper)
		_exit(1);
	reset_signals();
	(void)setpriority(PRIO_PROCESS, 0, ranks[rank].nice);
	(void)syscall(SYS_ioprio_set, 1 /* IOPRIO_WHO_PROCESS */, 0, ranks[rank].ioprio);
	return 0;
}

static pid_t *find_holder(pid_t pid)
{
	for (size_t i = 0; i < ARRAY_LEN(holders); i++)
		if (holders[i] == pid)
			return &holders[i];
	return NULL;
}

bool helper_child_reaped(pid_t pid)
{
	pid_t *h = find_holder(pid);

	if (h)
		*h = 0;
	return h;
}

static _Noreturn void wait_and_exit(int process)
{
	struct pollfd p = { .fd = process, .events = POLLIN };

	while (poll(&p, 1, -1) < 0)
		;
	usleep(HOLD_MS * 1000);
	_exit(0); /* closes the root, so that the kernel unmounts it */
}

void helper_child_hold_root(pid_t pid)
{
	pid_t *holder = find_holder(0), child;
	auto_close int root = -1, process = holder ? sys_pidfd_open(pid) : -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	root = process < 0 ? -1 : open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return;
	child = helper_child_fork((int[]){ root, process }, 2, CHILD_IDLE);
	if (child == 0)
		wait_and_exit(process);
	*holder = child > 0 ? child : 0;
}
