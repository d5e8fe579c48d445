/* SPDX-License-Identifier: Apache-2.0 */
/* The system call filter, call by call. The arguments have no effect even if the check were wrong:
 * bad descriptors, no addresses, wrong magic numbers. */
#include "probe.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "judge.h"

#define CALL(name, ...)                                                                            \
	{                                                                                          \
#name, SYS_##name,                                                                 \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static const struct call bpf[] = { CALL(bpf, -1, 0, 0), CALL(perf_event_open, 0, -1, -1, -1, -1) };
static const struct call keys[] = { CALL(add_key, 0), CALL(request_key, 0), CALL(keyctl, -1) };
static const struct call uring[] = { CALL(io_uring_setup, 0, 0), CALL(io_uring_enter, -1),
				     CALL(io_uring_register, -1) };
static const struct call aio[] = { CALL(io_setup, 0, 0),    CALL(io_destroy, -1),
				   CALL(io_submit, -1),	    CALL(io_getevents, -1),
				   CALL(io_pgetevents, -1), CALL(io_cancel, -1) };
static const struct call faults[] = { CALL(userfaultfd, -1) };
static const struct call kexec[] = { CALL(kexec_load, 0, 0, 0, -1),
				     CALL(kexec_file_load, -1, -1, 0, 0, -1) };
static const struct call modules[] = {
	CALL(init_module, 0, 0, 0), CALL(finit_module, -1, 0, 0), CALL(delete_module, 0, 0),
	CALL(create_module, 0),	    CALL(query_module, 0),	  CALL(get_kernel_syms, 0),
};
static const struct call machine[] = {
	CALL(reboot, 0, 0, 0),	  CALL(swapon, 0, 0),	      CALL(swapoff, 0),
	CALL(acct, -1),		  CALL(quotactl, -1),	      CALL(quotactl_fd, -1),
	CALL(sethostname, 0, -1), CALL(setdomainname, 0, -1), CALL(vhangup),
	CALL(nfsservctl, -1),	  CALL(syslog, -1),
};
static const struct call clocks[] = {
	CALL(settimeofday, 1, 1),
	CALL(clock_settime, -1, 0),
	CALL(clock_adjtime, -1, 0),
	CALL(adjtimex, 0),
};
static const struct call ports[] = { CALL(iopl, -1), CALL(ioperm, -1, -1, -1),
				     CALL(modify_ldt, -1) };
static const struct call watches[] = { CALL(fanotify_init, -1, -1), CALL(fanotify_mark, -1) };
static const struct call obsolete[] = {
	CALL(uselib, 0),
	CALL(_sysctl, 0),
	CALL(ustat, 0),
	CALL(sysfs, -1),
	CALL(lookup_dcookie, 0),
	CALL(afs_syscall),
	CALL(tuxcall),
	CALL(security),
	CALL(vserver),
	CALL(getpmsg),
	CALL(putpmsg),
	CALL(epoll_ctl_old),
	CALL(epoll_wait_old),
	CALL(set_thread_area, 0),
	CALL(get_thread_area, 0),
};
static const struct call unshares[] = { CALL(unshare, 0), CALL(unshare, 0x10000000),
					CALL(unshare, 0x00020000), CALL(unshare, 0x80),
					CALL(setns, -1, 0) };

/* clone with each namespace flag; SIGCHLD in the low byte as fork does. */
static const struct call clones[] = {
	{ "clone-newns", SYS_clone, { 0x00020000 | SIGCHLD } },
	{ "clone-newcgroup", SYS_clone, { 0x02000000 | SIGCHLD } },
	{ "clone-newuts", SYS_clone, { 0x04000000 | SIGCHLD } },
	{ "clone-newipc", SYS_clone, { 0x08000000 | SIGCHLD } },
	{ "clone-newuser", SYS_clone, { 0x10000000 | SIGCHLD } },
	{ "clone-newpid", SYS_clone, { 0x20000000 | SIGCHLD } },
	{ "clone-newnet", SYS_clone, { 0x40000000 | SIGCHLD } },
	{ "clone-all", SYS_clone, { 0x7e020000 | SIGCHLD } },
};

/* Numbers above the list, and recent system calls that the list does not contain. */
static const struct call unknown[] = {
	{ "463", 463, { 0 } }, { "464", 464, { 0 } },
	{ "470", 470, { 0 } }, { "500", 500, { 0 } },
	{ "999", 999, { 0 } }, { "4095", 4095, { 0 } },
	{ "400", 400, { 0 } }, { "0x3fffffff", 0x3fffffff, { 0 } },
};

#define X32 0x40000000
static const struct call x32[] = {
	{ "x32-getpid", X32 | SYS_getpid, { 0 } }, { "x32-read", X32 | SYS_read, { -1 } },
	{ "x32-execve", X32 | 520, { 0 } },	   { "x32-ioctl", X32 | 514, { -1 } },
	{ "x32-ptrace", X32 | 521, { -1 } },	   { "x32-unshare", X32 | SYS_unshare, { 0 } },
};

static const struct call personalities[] = {
	{ "READ_IMPLIES_EXEC", SYS_personality, { READ_IMPLIES_EXEC } },
	{ "MMAP_PAGE_ZERO", SYS_personality, { MMAP_PAGE_ZERO } },
	{ "ADDR_COMPAT_LAYOUT", SYS_personality, { ADDR_COMPAT_LAYOUT } },
	{ "PER_LINUX32", SYS_personality, { PER_LINUX32 } },
	{ "PER_SVR4", SYS_personality, { PER_SVR4 } },
	{ "UNAME26", SYS_personality, { UNAME26 } },
};

static const struct call prctls[] = {
	{ "PR_SET_MM", SYS_prctl, { PR_SET_MM, -1 } },
	{ "PR_SET_SECUREBITS", SYS_prctl, { PR_SET_SECUREBITS, -1 } },
};

static const struct call secrets[] = { CALL(memfd_secret, -1) };

/* Calls that ordinary programs need. */
static const struct call useful[] = {
	CALL(memfd_create, 0, -1),
	CALL(landlock_create_ruleset, 0, 0, -1),
	CALL(seccomp, -1),
	CALL(ptrace, -1),
	CALL(pidfd_open, -1),
	CALL(statx, -1),
	CALL(clone, SIGCHLD),
	CALL(execveat, -1),
	CALL(close_range, -1, 0, 0),
	CALL(inotify_init1, -1),
	CALL(shmget, 0, 0, 0),
	CALL(mq_open, 0),
	CALL(personality, 0xffffffff),
	CALL(copy_file_range, -1, 0, -1),
	CALL(membarrier, -1),
	CALL(rseq, 0, 0, -1),
	CALL(getrandom, 0, 0, -1),
	CALL(socketpair, 1 /* unix */, 1, 0),
	CALL(socket, 1 /* unix */, 1, 0),
	CALL(socket, 2 /* inet */, 1, 0),
	CALL(socket, 10 /* inet6 */, 2, 0),
	CALL(socket, 16 /* netlink */, 3, 0 /* route */),
	CALL(setsockopt, -1, 6 /* tcp */, 1 /* nodelay */),
};

static const struct group {
	const char *name;
	const struct call *calls;
	size_t count;
} groups[] = {
#define GROUP(g)                                                                                   \
	{                                                                                          \
#g, g, LEN(g)                                                                      \
	}
	GROUP(bpf),	GROUP(keys),	      GROUP(uring),    GROUP(aio),     GROUP(faults),
	GROUP(kexec),	GROUP(modules),	      GROUP(machine),  GROUP(clocks),  GROUP(ports),
	GROUP(watches), GROUP(obsolete),      GROUP(unshares), GROUP(clones),  GROUP(unknown),
	GROUP(x32),	GROUP(personalities), GROUP(prctls),   GROUP(secrets),
};

static int refused(const struct check *c)
{
	for (size_t i = 0; i < LEN(groups); i++)
		if (strcmp(groups[i].name, c->arg) == 0)
			return judge_all(groups[i].calls, groups[i].count);
	return trouble("no group %s", c->arg);
}

static int allowed(const struct check *c)
{
	(void)c;
	return judge_none(useful, LEN(useful));
}

static int mode(const struct check *c)
{
	(void)c;
	return status_number("Seccomp", 10) == 2 ? held() : broken("no filter is in force");
}

/* ENOSYS exactly: C libraries fall back to clone(2) then, whose flags the filter can see. */
static int clone3(const struct check *c)
{
	const struct call call = { "clone3", SYS_clone3, { 0, 0 } };
	struct judgement j = judge(&call);

	(void)c;
	if (j.how == JUDGED_UNKNOWN)
		return unjudged("cannot install a second filter (%d)", j.code);
	if (j.how != JUDGED_REFUSED || j.code != ENOSYS)
		return broken("clone3 is not answered with ENOSYS (%d, %d)", j.how, j.code);
	return held();
}

static int i386(const struct check *c)
{
	struct judgement j = judge_i386();

	(void)c;
	if (j.how == JUDGED_UNKNOWN)
		return unjudged("cannot install a second filter (%d)", j.code);
	if (j.how == JUDGED_ALLOWED)
		return broken("a call through int 0x80 is let through");
	if (j.how == JUDGED_KILLED && j.code == SIGSEGV)
		return unjudged("this kernel has no int 0x80");
	return held();
}

/* A filter cannot be removed, neither by strict mode nor by an empty filter. */
static int stays(const struct check *c)
{
	const struct call call = { "mount", SYS_mount, { 0, 0, 0, 0, 0 } };

	(void)c;
	prctl(PR_SET_SECCOMP, 0, 0, 0, 0);
	syscall(SYS_seccomp, 99, 0, NULL);
	if (status_number("Seccomp", 10) != 2)
		return broken("the filter is gone");
	return judge_all(&call, 1);
}

#define GROUP_CHECK(group, what)                                                                   \
	{                                                                                          \
		"seccomp-" group, what, refused, BOTH, "seccomp", .arg = group                     \
	}

const struct check checks_seccomp[] = {
	{ "seccomp-mode", "a filter is in force", mode, BOTH, "seccomp" },
	{ "seccomp-stays", "the filter cannot be taken off", stays, BOTH, "seccomp" },
	GROUP_CHECK("bpf", "bpf and perf_event_open are refused"),
	GROUP_CHECK("keys", "keyrings are refused"),
	GROUP_CHECK("uring", "io_uring is refused"),
	GROUP_CHECK("aio", "io_setup, which has a limit of the whole host, is refused"),
	GROUP_CHECK("faults", "userfaultfd is refused"),
	GROUP_CHECK("kexec", "kexec is refused"),
	GROUP_CHECK("modules", "kernel modules are refused"),
	GROUP_CHECK("machine", "reboot, swap, accounting, quota, host name, log are refused"),
	GROUP_CHECK("clocks", "setting clocks is refused"),
	GROUP_CHECK("ports", "I/O ports and segment descriptors are refused"),
	GROUP_CHECK("watches", "fanotify is refused"),
	GROUP_CHECK("obsolete", "obsolete calls are refused"),
	GROUP_CHECK("secrets", "memory the host cannot read back is refused"),
	GROUP_CHECK("unshares", "unshare and setns are refused"),
	GROUP_CHECK("clones", "clone with a namespace flag is refused"),
	GROUP_CHECK("unknown", "calls that are not in the list are refused"),
	GROUP_CHECK("x32", "x32 calls are refused"),
	GROUP_CHECK("personalities", "personalities that weaken memory layout are refused"),
	GROUP_CHECK("prctls", "prctl that rewrites memory layout or securebits is refused"),
	{ "seccomp-clone3", "clone3 answers ENOSYS", clone3, BOTH, "seccomp" },
	{ "seccomp-i386", "32-bit calls are refused", i386, BOTH, "seccomp" },
	{ "seccomp-useful", "calls of ordinary programs pass", allowed, BOTH,
	  .nofail = "checks what must stay allowed; a weakened sandbox allows more, not less" },
	{ 0 },
};
