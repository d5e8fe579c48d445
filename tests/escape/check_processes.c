/* SPDX-License-Identifier: Apache-2.0 */
/* Processes outside are not reachable; own processes can still be traced and signalled. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "judge.h"

/* Signal 0 has no effect on an inner process with that number. EPERM is a failure: the process
 * exists. */
static int signal_host(const struct check *c)
{
	long pid = fact_number("HOST_PID");

	(void)c;
	if (pid <= 0)
		return unjudged("the runner gave no process of the host");
	if (pid <= 64)
		return unjudged("process %ld of the host may exist inside too", pid);
	if (kill((pid_t)pid, 0) == 0 || errno != ESRCH)
		return broken("process %ld of the host can be seen: %s", pid, strerror(errno));
	return held();
}

static int pidfd_host(const struct check *c)
{
	long pid = fact_number("HOST_PID");
	int fd;

	(void)c;
	if (pid <= 64)
		return unjudged("the runner gave no process of the host");
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd >= 0) {
		close(fd);
		return broken("a pidfd of process %ld of the host was opened", pid);
	}
	return held();
}

/* In a separate pid namespace numbers start at 1 and the parent is inside. */
static int own_numbers(const struct check *c)
{
	char text[4096], *line;

	(void)c;
	if (getppid() == 0 && getpid() != 1)
		return broken("the parent process is outside");
	if (read_text("/proc/self/status", text, sizeof(text)) < 0 ||
	    !(line = strstr(text, "NSpid:")))
		return trouble("no NSpid in /proc/self/status");
	if (fact_number("HOST_PID") > 2000 && getpid() > fact_number("HOST_PID") / 2)
		return broken("process numbers go on from the host's: %d", (int)getpid());
	return held();
}

/* The session must begin inside: a session of the host would share its terminal. */
static int own_session(const struct check *c)
{
	int fd;

	(void)c;
	if (getsid(0) <= 0)
		return broken("the session belongs to a process outside");
	if (getpgrp() <= 0)
		return broken("the process group belongs to a process outside");
	fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	return fd >= 0 ? broken("/dev/tty leads to a terminal") : held();
}

static int trace_me(void *arg)
{
	(void)arg;
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		return 1;
	raise(SIGSTOP);
	return 7;
}

/* gdb and strace on a child must work. */
static int ptrace_child(const struct check *c)
{
	pid_t pid = fork();
	int status;

	(void)c;
	if (pid == 0)
		_exit(trace_me(NULL));
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return trouble("fork: %s", strerror(errno));
	if (!WIFSTOPPED(status))
		return broken("a child could not be traced");
	if (ptrace(PTRACE_PEEKUSER, pid, 0, NULL) == -1 && errno)
		return broken("registers of a traced child could not be read");
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == 7 ? held()
							     : broken("tracing ended badly");
}

static int foreign_memory(const struct check *c)
{
	static const struct call calls[] = {
		{ "process_madvise", SYS_process_madvise, { -1, 0, 0, 0, 0 } },
		{ "process_mrelease", SYS_process_mrelease, { -1, 0 } },
		{ "migrate_pages", SYS_migrate_pages, { 0, 0, 0, 0 } },
		{ "move_pages", SYS_move_pages, { 0, 0, 0, 0, 0, 0 } },
		{ "kcmp", SYS_kcmp, { 1, 1, 0, 0, 0 } },
		{ "pidfd_getfd", SYS_pidfd_getfd, { -1, 0, 0 } },
	};

	(void)c;
	return judge_all(calls, LEN(calls));
}

const struct check checks_processes[] = {
	{ "processes-signal-host", "no process of the host takes a signal", signal_host, BOTH,
	  "pidns" },
	{ "processes-pidfd-host", "no pidfd of a process of the host", pidfd_host, BOTH, "pidns" },
	{ "processes-own-numbers", "process numbers are the sandbox's own", own_numbers, BOTH,
	  "pidns" },
	{ "processes-own-session", "session and group begin inside, no terminal is in control",
	  own_session, BOTH, "session" },
	{ "processes-ptrace-child", "an own child can be traced", ptrace_child, BOTH,
	  .nofail = "checks what must stay allowed; a weakened sandbox allows more, not less" },
	{ "processes-foreign-memory", "calls into other processes' memory are refused",
	  foreign_memory, BOTH, "seccomp" },
	{ 0 },
};
