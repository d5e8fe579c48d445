/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-init: PID 1 of a sandbox. Starts commands, reaps processes, keeps the output and results of
 * commands, and serves files. The engine connects to the socket that the keeper passed. */
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/test_hook.h"
#include "base/fd_message.h"
#include "base/file_io.h"
#include "init/exec/agent_conn.h"
#include "init/exec/event_loop.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static bool is_listener(int fd)
{
	socklen_t n = sizeof(int);
	int listens = 0, type = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) == 0 && listens &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_SEQPACKET;
}

/* Opens something for each closed number, so that no later open() gets one of them. */
static int fill_fds(int from, int end, bool stdio)
{
	for (int fd = from; fd < end; fd++)
		if (!is_open(fd) && (stdio ? open("/dev/null", O_RDWR | O_CLOEXEC)
					   : open("/", O_PATH | O_CLOEXEC)) != fd)
			return -1;
	return 0;
}

/* Exit with the keeper until AGENT_BIND. The keeper set the signal before exec, but exec clears it
 * when uid 0 regains its capabilities. A keeper that died in between sends no signal, so check for
 * that too. */
static int die_with_keeper(void)
{
	struct pollfd p = { .fd = BOOT_FD_KEEPER, .events = POLLIN };

	if (!is_open(BOOT_FD_KEEPER))
		return 0;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || poll(&p, 1, 0) != 0)
		return -1;
	close(BOOT_FD_KEEPER);
	return 0;
}

static int take_fds(void)
{
	if (fill_fds(0, 3, true) < 0 || !is_listener(BOOT_FD_LISTEN) ||
	    fd_message_nonblock(BOOT_FD_LISTEN) < 0)
		return -1;
	syscall(SYS_close_range, BOOT_FD_END, ~0u, 0);
	for (int fd = BOOT_FD_LISTEN; fd < BOOT_FD_END && !hook_weak("closefds"); fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	init_binding.cgroup = is_open(BOOT_FD_CGROUP);
	init_binding.tasks = is_open(BOOT_FD_TASKS);
	init_binding.oom = is_open(BOOT_FD_OOM);
	init_binding.pids = is_open(BOOT_FD_PIDS);
	return fill_fds(BOOT_FD_CGROUP, BOOT_FD_END, false);
}

static void drop_inherited_caps(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];

	if (hook_weak("caps"))
		return;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &h, d) == 0) {
		d[0].inheritable = d[1].inheritable = 0;
		syscall(SYS_capset, &h, d);
	}
}

/* Commands must not inherit signals that the parent of lodge-init ignored. */
static void reset_signals(void)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };

	for (int i = 1; i < _NSIG; i++)
		sigaction(i, &sa, NULL);
}

static void raise_limits(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

/* A keeper without privileges may have been unable to set it. Commands inherit the score. Set it
 * now: a process that is not dumpable cannot write it later. */
static void volunteer_for_oom(void)
{
	(void)file_printf_at(AT_FDCWD, "/proc/self/oom_score_adj", "%d", BOOT_OOM_SCORE);
}

int main(void)
{
	init_binding.pid1 = getpid() == 1;
	if (die_with_keeper() < 0 || take_fds() < 0)
		return 1;
	volunteer_for_oom();
	prctl(PR_SET_NAME, "lodge-init"); /* shown by ps on the host instead of the memfd's name */
	if (prctl(PR_SET_DUMPABLE, hook_weak("dumpable")) < 0)
		return 1;
	if (!init_binding.pid1)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	umask(0);
	reset_signals();
	drop_inherited_caps();
	raise_limits();
	if (chdir("/") < 0 || event_loop_init() < 0)
		return 1;
	agent_conn_listen();
	event_loop_run();
}
