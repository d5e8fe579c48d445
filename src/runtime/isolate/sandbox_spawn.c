/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/isolate/sandbox_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/test_hook.h"
#include "runtime/isolate/confine.h"
#include "runtime/mount.h"
#include "runtime/linux_calls.h"
#include "wire/boot_fds.h"

#define CLONE_NEWTIME_ 0x80

/* Written by the child, which shares our memory, read by us once it has become lodge-init or died:
 * a failure needs no pipe. */
static struct {
	const char *step;
	bool failed;
	struct err err;
} child;

static void at(const char *step)
{
	child.step = step;
	hook_crash(step);
}

static _Noreturn void child_fail(void)
{
	child.failed = true;
	_exit(1);
}

static void check(int r)
{
	if (r >= 0)
		return;
	err_sys(&child.err, -r, "%s", child.step);
	child_fail();
}

static void check_err(int r)
{
	if (r >= 0)
		return;
	err_ctx(&child.err, "%s", child.step);
	child_fail();
}

static int write_zero(int fd)
{
	return fd >= 0 && write(fd, "0", 1) < 0 ? -errno : 0;
}

/* Joins the v1 groups (in v2 it was born in its own), so that the cgroup namespace made next shows
 * them as the root, then leaves the limited memory again: PID 1 must not be the OOM killer's prey.
 * Writing "0" to `tasks` moves only the writer and takes no lock that others wait for. */
static void child_cgroup(struct cgroup_fds *cg, const struct limits *limits)
{
	at("cgroup");
	for (int i = 0; i < CGROUP_V1_COUNT; i++)
		check(write_zero(cg->tasks[i]));
	if (!hook_weak("cgroupns"))
		check(unshare(CLONE_NEWCGROUP) < 0 ? -errno : 0);
	check(write_zero(cg->memory_out));
	check_err(cgroup_enter(cg, limits, &child.err));
}

static void child_tree(const struct sandbox_spawn_args *a)
{
	/* in the keeper's own mount namespace nothing may be mounted or changed */
	if (hook_weak("mountns"))
		return;
	at("base tree");
	check_err(rootfs_enter_base(&a->parts->dev, a->host->rootless, &child.err));
	at("root");
	check_err(a->root ? rootfs_enter(a->root, &child.err) : rootfs_pivot_base(&child.err));
}

static void child_confine(const struct sandbox_spawn_args *a)
{
	at("rlimits");
	check(confine_rlimits());
	at("user namespace");
	check(confine_userns(a->parts->idmap.userns));
	at("seccomp");
	check(confine_seccomp(&a->host->filter[a->root_class], a->root_class));
	at("ids");
	check(confine_ids(a->inner_id, a->host->rootless));
	at("capabilities");
	check(confine_caps(a->root_class, a->host->rootless));
}

/* Until the keeper has told it whose it is, it dies with the keeper: nothing unrecorded lives. One
 * that was killed before this line sends no signal any more, and getppid() is 0 for a PID 1. */
static void child_die_with(int keeper)
{
	struct pollfd p = { .fd = keeper, .events = POLLIN };

	check(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ? -errno : 0);
	check(poll(&p, 1, 0) != 0 ? -ESRCH : 0);
}

static void child_signals(void)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int s = 1; s < 32; s++)
		(void)sigaction(s, &dfl, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void child_main(const struct sandbox_spawn_args *a)
{
	struct cgroup_fds cg =
		a->parts->cgroup; /* the memory is the keeper's, new descriptors are not */
	int fds[BOOT_FD_END - BOOT_FD_LISTEN + 1] = {
		a->listener,
		a->parts->cgroup.leaves,
		a->parts->cgroup.tasks[CGROUP_MEMORY],
		a->parts->cgroup.oom,
		a->parts->cgroup.pids_events,
		a->parts->idmap.lock,
		a->host->self,
		a->host->init,
	};
	static char name[] = "lodge-init";
	char *argv[] = { name, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	check(null < 0 ? -errno : 0);
	at("session");
	if (!hook_weak("session"))
		(void)setsid();
	at("network namespace");
	check(a->parts->idmap.netns >= 0 && setns(a->parts->idmap.netns, CLONE_NEWNET) < 0 ? -errno
											   : 0);
	child_cgroup(&cg, a->limits);
	fds[BOOT_FD_OOM - BOOT_FD_LISTEN] = cg.oom;
	child_tree(a);
	child_signals();
	umask(022);
	child_confine(a);
	child_die_with(a->host->self);
	at("descriptors");
	check(confine_fds(fds, BOOT_FD_END - BOOT_FD_LISTEN + 1, null));
	if (!hook_weak("closefds"))
		check(sys_close_range(BOOT_FD_END + 1, ~0u, 0) < 0 ? -errno : 0);
	(void)fcntl(BOOT_FD_END, F_SETFD, FD_CLOEXEC);
	at("exec");
	syscall(SYS_execveat, BOOT_FD_END, "", argv, hook_env(), AT_EMPTY_PATH);
	check(-errno);
	child_fail();
}

static bool has_time_namespaces(void)
{
	static int has = -1;

	if (has < 0)
		has = access("/proc/self/ns/time", F_OK) == 0;
	return has;
}

/* The time namespace at birth, like the others: one that is unshared is entered by exec only since
 * Linux 6.2, and who has not entered may not share memory with a child, which lodge-init does. */
static uint64_t namespaces(void)
{
	uint64_t flags = hook_weak("mountns") ? 0 : CLONE_NEWNS;

	flags |= hook_weak("pidns") ? 0 : CLONE_NEWPID;
	flags |= hook_weak("ipcns") ? 0 : CLONE_NEWIPC;
	flags |= hook_weak("utsns") ? 0 : CLONE_NEWUTS;
	flags |= hook_weak("timens") || !has_time_namespaces() ? 0 : CLONE_NEWTIME_;
	return flags;
}

int sandbox_spawn(const struct sandbox_spawn_args *args, pid_t *ret_pid, struct err *err)
{
	struct clone_args clone = { .flags = CLONE_VM | CLONE_VFORK | namespaces(),
				    .exit_signal = SIGCHLD };
	sigset_t all, old;
	long pid;

	if (args->parts->cgroup.dir >= 0) {
		clone.flags |= CLONE_INTO_CGROUP;
		clone.cgroup = (uint64_t)args->parts->cgroup.dir;
	}
	memset(&child, 0, sizeof(child));
	child.step = "clone";
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = sys_clone3_inline(&clone);
	if (pid == 0)
		child_main(args);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (pid < 0)
		return err_sys(err, (int)-pid, "clone");
	if (child.failed) {
		(void)waitpid((pid_t)pid, NULL, 0); /* it has left already */
		*err = child.err;
		return -1;
	}
	if (waitpid((pid_t)pid, NULL, WNOHANG) == (pid_t)pid)
		return err_set(err, ERR_INTERNAL, "the new process died at %s", child.step);
	*ret_pid = (pid_t)pid;
	return 0;
}

static _Noreturn void claim_main(int pidfd, const struct rootfs *root)
{
	at("join");
	check(setns(pidfd, CLONE_NEWNS | CLONE_NEWUTS) < 0 ? -errno : 0);
	at("root");
	check_err(rootfs_enter(root, &child.err));
	child.step = NULL;
	_exit(0);
}

int sandbox_spawn_claim(pid_t pid, const struct rootfs *root, struct err *err)
{
	struct clone_args clone = { .flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD };
	auto_close int pidfd = sys_pidfd_open(pid);
	sigset_t all, old;
	long helper;

	memset(&child, 0, sizeof(child));
	child.step = "claim";
	if (pidfd < 0)
		return err_sys(err, errno, "claim");
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	helper = sys_clone3_inline(&clone);
	if (helper == 0)
		claim_main(pidfd, root);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (helper < 0)
		return err_sys(err, (int)-helper, "clone");
	(void)waitpid((pid_t)helper, NULL, 0);
	if (child.failed) {
		*err = child.err;
		return -1;
	}
	return child.step ? err_set(err, ERR_INTERNAL, "claim helper died at %s", child.step) : 0;
}

int sandbox_spawn_seal_init(const char *path, struct err *err)
{
	auto_close int file = open(path, O_RDONLY | O_CLOEXEC);
	/* MFD_EXEC is refused by kernels that do not know it, and needed by settings of those that
	 * do */
	int mem = (int)syscall(SYS_memfd_create, "lodge-init",
			       MFD_CLOEXEC | MFD_ALLOW_SEALING | 0x10u);
	auto_close int fd =
		mem >= 0 ? mem : memfd_create("lodge-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat st;
	ssize_t n = 1;

	if (file < 0 || fd < 0 || fstat(file, &st) < 0)
		return err_sys(err, errno, "%s", path);
	while (n > 0)
		n = sendfile(fd, file, NULL, (size_t)st.st_size);
	if (n < 0)
		return err_sys(err, errno, "copy %s", path);
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return err_sys(err, errno, "seal lodge-init");
	return steal_fd(&fd);
}
