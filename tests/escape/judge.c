/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "judge.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

/* Exit statuses of the child above every errno. */
enum { NO_TRACE = 201, NO_FILTER, RETURNED };

static int stack_filter(long nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
	};
	struct sock_fprog prog = { .len = LEN(code), .filter = code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == 0)
		return 0;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static long getpid_i386(void)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(20L) : "memory");
	return ret;
}

static void judged_child(const struct call *c)
{
	const long *a = c ? c->args : NULL;
	long ret;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(NO_TRACE);
	raise(SIGSTOP);
	if (stack_filter(c ? c->nr : -1) < 0)
		_exit(NO_FILTER);
	if (!c) {
		ret = getpid_i386();
		_exit(ret < 0 ? (int)-ret : RETURNED);
	}
	ret = syscall(c->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	_exit(ret == -1 ? errno : RETURNED);
}

static struct judgement from_status(int status)
{
	if (WIFSIGNALED(status))
		return (struct judgement){ JUDGED_KILLED, WTERMSIG(status) };
	if (WEXITSTATUS(status) >= NO_TRACE)
		return (struct judgement){ JUDGED_UNKNOWN, WEXITSTATUS(status) };
	return (struct judgement){ JUDGED_REFUSED, WEXITSTATUS(status) };
}

/* Lets the child run up to the judged call. True if it has stopped there, before executing it. */
static bool run_to_call(pid_t pid, int *status)
{
	int sig = 0;

	for (;;) {
		if (ptrace(PTRACE_CONT, pid, NULL, (void *)(long)sig) < 0 ||
		    waitpid(pid, status, __WALL) < 0)
			return false;
		if (!WIFSTOPPED(*status))
			return false;
		if (*status >> 8 == (SIGTRAP | (PTRACE_EVENT_SECCOMP << 8)))
			return true;
		sig = WSTOPSIG(*status);
	}
}

static struct judgement judge_child(const struct call *c)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return (struct judgement){ JUDGED_UNKNOWN, errno };
	if (pid == 0)
		judged_child(c);
	if (waitpid(pid, &status, __WALL) < 0 || !WIFSTOPPED(status))
		return from_status(status);
	ptrace(PTRACE_SETOPTIONS, pid, NULL,
	       (void *)(long)(PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL));
	if (!run_to_call(pid, &status))
		return from_status(status);
	/* doubly safe: no such call, and killed before it could be made */
	ptrace(PTRACE_POKEUSER, pid, (void *)(long)(ORIG_RAX * sizeof(long)), (void *)-1L);
	kill(pid, SIGKILL);
	waitpid(pid, &status, __WALL);
	return (struct judgement){ JUDGED_ALLOWED, 0 };
}

struct judgement judge(const struct call *c)
{
	return judge_child(c);
}

struct judgement judge_i386(void)
{
	return judge_child(NULL);
}

static int judge_list(const struct call *calls, size_t count, bool want_refused)
{
	char names[400] = "";
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		struct judgement j = judge(&calls[i]);

		if (j.how == JUDGED_UNKNOWN)
			return unjudged("cannot install a second filter to test %s (%d)",
					calls[i].name, j.code);
		if ((j.how != JUDGED_ALLOWED) == want_refused || used >= sizeof(names) - 40)
			continue;
		used += (size_t)snprintf(names + used, sizeof(names) - used, " %s", calls[i].name);
	}
	if (!names[0])
		return held();
	return broken("the filter %s%s", want_refused ? "allows" : "refuses", names);
}

int judge_all(const struct call *calls, size_t count)
{
	return judge_list(calls, count, true);
}

int judge_none(const struct call *calls, size_t count)
{
	return judge_list(calls, count, false);
}
