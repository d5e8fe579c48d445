/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 of the sandbox, lodge-init: the guest must not be able to use it. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "judge.h"

/* PID 1 is touched only if it is the sandbox's: in a sandbox weakened too far it would be the
 * host's. */
static bool is_own_pid1(void)
{
	char link[64] = "";
	const char *host = fact("NS:pid");

	if (readlink("/proc/self/ns/pid", link, sizeof(link) - 1) < 0 || !host)
		return false;
	return strcmp(link, host) != 0;
}

/* An ordinary user has no second id to separate the guest from PID 1. PID 1 still survives signals
 * (pid1-kill), and nothing of it can be read. */
static int same_id(void)
{
	return unjudged("rootless: the guest and PID 1 have the same id");
}

static int foreign_pid1(void)
{
	return unjudged("PID 1 is not the sandbox's own");
}

/* Opening is sufficient; nothing is read. */
static int file_of_pid1(const struct check *c)
{
	char path[PATH_MAX], target[PATH_MAX];
	int fd;

	if (!is_own_pid1())
		return foreign_pid1();
	snprintf(path, sizeof(path), "/proc/1/%s", c->arg);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		close(fd);
		return broken("%s was opened", path);
	}
	if (readlink(path, target, sizeof(target)) >= 0)
		return broken("%s was read", path);
	return held();
}

static int signal_pid1(const struct check *c)
{
	int pidfd;

	(void)c;
	if (!is_own_pid1())
		return foreign_pid1();
	if (is_rootless())
		return same_id();
	if (kill(1, 0) == 0 && !is_root_class())
		return broken("signals to PID 1 are permitted");
	pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
	if (pidfd >= 0 && !is_root_class() &&
	    syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0)
		return broken("signals to PID 1 are permitted by pidfd");
	return held();
}

/* Really sends signals; the sandbox survives them. */
static int kill_pid1(const struct check *c)
{
	(void)c;
	if (!is_own_pid1())
		return foreign_pid1();
	for (int sig = 1; sig < 65; sig++)
		kill(1, sig);
	usleep(200000);
	if (kill(1, 0) < 0 && errno == ESRCH)
		return broken("PID 1 is gone");
	return held();
}

static int ptrace_pid1(const struct check *c)
{
	(void)c;
	if (!is_own_pid1())
		return foreign_pid1();
	/* SEIZE does not stop it, and ends with this process */
	if (ptrace(PTRACE_SEIZE, 1, NULL, NULL) == 0)
		return broken("PID 1 can be traced");
	return held();
}

static int memory_of_pid1(const struct check *c)
{
	char byte;
	struct iovec local = { &byte, 1 }, remote = { (void *)0x1000, 1 };

	(void)c;
	if (!is_own_pid1())
		return foreign_pid1();
	/* an address that is never mapped: permitted is EFAULT */
	if (process_vm_readv(1, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT)
		return broken("process_vm_readv of PID 1 is permitted");
	if (process_vm_writev(1, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT)
		return broken("process_vm_writev of PID 1 is permitted");
	return held();
}

static int descriptors_of_pid1(const struct check *c)
{
	const struct call call = { "pidfd_getfd", SYS_pidfd_getfd, { 3, 3, 0 } };
	int pidfd, fd;

	(void)c;
	if (!is_own_pid1())
		return foreign_pid1();
	pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
	fd = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, 3, 0);
	if (fd >= 0)
		return broken("a descriptor of PID 1 was taken");
	return judge_all(&call, 1);
}

static int limits_of_pid1(const struct check *c)
{
	struct rlimit rl;

	(void)c;
	if (!is_own_pid1())
		return foreign_pid1();
	if (is_rootless())
		return same_id();
	if (prlimit(1, RLIMIT_NOFILE, NULL, &rl) == 0)
		return broken("limits of PID 1 can be read");
	return held();
}

static int scheduling_of_pid1(const struct check *c)
{
	cpu_set_t set;

	(void)c;
	if (!is_own_pid1())
		return foreign_pid1();
	if (is_rootless())
		return same_id();
	if (sched_getaffinity(0, sizeof(set), &set) == 0 &&
	    sched_setaffinity(1, sizeof(set), &set) == 0)
		return broken("the processors of PID 1 can be chosen");
	if (setpriority(PRIO_PROCESS, 1, 0) == 0)
		return broken("the priority of PID 1 can be set");
	return held();
}

/* With CAP_SETUID the root class can take lodge-init's own id; it must not gain anything by that.
 */
static int as_init_id(void *arg)
{
	static const char *const files[] = { "environ", "mem", "maps", "exe", "root", "fd/3" };
	struct check c = { 0 };

	(void)arg;
	if (setresgid(65530, 65530, 65530) < 0 || setresuid(65530, 65530, 65530) < 0)
		return HELD;
	for (size_t i = 0; i < LEN(files); i++) {
		c.arg = files[i];
		if (file_of_pid1(&c) != HELD)
			return BROKEN;
	}
	return ptrace_pid1(&c) != HELD || memory_of_pid1(&c) != HELD ? BROKEN : HELD;
}

static int become_init(const struct check *c)
{
	(void)c;
	return is_own_pid1() ? in_child(as_init_id, NULL) : foreign_pid1();
}

#define PID1_FILE(file)                                                                            \
	{                                                                                          \
		"pid1-" file, "/proc/1/" file " cannot be opened", file_of_pid1, BOTH,             \
			"caps,dumpable,hidepid", .arg = file                                       \
	}

const struct check checks_pid1[] = {
	PID1_FILE("environ"),
	PID1_FILE("mem"),
	PID1_FILE("maps"),
	PID1_FILE("exe"),
	PID1_FILE("root"),
	PID1_FILE("cwd"),
	PID1_FILE("fd"),
	{ "pid1-signal", "PID 1 takes no signal from the guest", signal_pid1, USER, "caps" },
	{ "pid1-kill", "PID 1 survives every signal", kill_pid1, BOTH,
	  .nofail = "the kernel itself keeps SIGKILL from PID 1 of a namespace", .options = "" },
	{ "pid1-ptrace", "PID 1 cannot be traced", ptrace_pid1, BOTH, "caps,dumpable,hidepid" },
	{ "pid1-memory", "memory of PID 1 cannot be reached", memory_of_pid1, BOTH,
	  "caps,dumpable,hidepid" },
	{ "pid1-descriptors", "descriptors of PID 1 cannot be taken", descriptors_of_pid1, BOTH,
	  "seccomp" },
	{ "pid1-limits", "limits of PID 1 cannot be reached", limits_of_pid1, USER, "caps" },
	{ "pid1-scheduling", "scheduling of PID 1 cannot be changed", scheduling_of_pid1, USER,
	  "caps" },
	{ "pid1-same-id", "a process with lodge-init's id gains no rights", become_init, BOTH,
	  "caps,dumpable,hidepid" },
	{ 0 },
};
