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
#include "runtime/linux_calls.h"
#include "wire/boot_fds.h"

#define CLONE_NEWTIME_ 0x80

/* Written by the child, which shares the keeper's memory (CLONE_VM) until exec or exit. The keeper
 * is suspended that long (CLONE_VFORK) and then reads it. */
static struct {
	const char *step;
	bool failed;
	struct err err;
} child;

static void begin_step(const char *step)
{
	child.step = step;
	hook_crash(step);
}

static _Noreturn void child_fail(void)
{
	child.failed = true;
	_exit(1);
}

static void check_sys(int r)
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

/* Joins the v1 cgroups before it makes the cgroup namespace, which then shows them as the root (in
 * v2 clone3 started it in its cgroup). Then it leaves the limited memory cgroup again, because the
 * OOM killer must not select PID 1. Writing "0" to `tasks` moves only the calling thread and takes
 * no lock for which other processes wait. */
static void child_cgroup(struct cgroup_fds *cg, const struct limits *limits)
{
	begin_step("cgroup");
	for (int i = 0; i < CGROUP_V1_COUNT; i++)
		check_sys(write_zero(cg->tasks[i]));
	if (!hook_weak("cgroupns"))
		check_sys(unshare(CLONE_NEWCGROUP) < 0 ? -errno : 0);
	check_sys(write_zero(cg->memory_out));
	check_err(cgroup_enter(cg, limits, &child.err));
}

static void child_tree(const struct sandbox_spawn_args *a)
{
	/* weakened test build: do not mount anything in the keeper's own mount namespace */
	if (hook_weak("mountns"))
		return;
	begin_step("base tree");
	check_err(rootfs_enter_base(&a->parts->dev, a->host->rootless, &child.err));
	begin_step("root");
	check_err(a->root ? rootfs_enter(a->root, &child.err) : rootfs_pivot(&child.err));
}

static void child_confine(const struct sandbox_spawn_args *a)
{
	begin_step("rlimits");
	check_sys(confine_rlimits());
	begin_step("user namespace");
	check_sys(confine_userns(a->parts->idmap.userns));
	begin_step("seccomp");
	check_sys(confine_seccomp(&a->host->filter[a->root_class], a->root_class));
	begin_step("ids");
	check_sys(confine_ids(a->inner_id, a->host->rootless));
	begin_step("capabilities");
	check_sys(confine_caps(a->root_class, a->host->rootless));
}

/* Until lodge-init is bound to its guest, it dies with the keeper, so that no unrecorded sandbox
 * survives. If the keeper was killed before this prctl(), no signal comes; getppid() is 0 for PID
 * 1, so the pidfd of the keeper shows that. */
static void child_die_with(int keeper)
{
	struct pollfd p = { .fd = keeper, .events = POLLIN };

	check_sys(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ? -errno : 0);
	check_sys(poll(&p, 1, 0) != 0 ? -ESRCH : 0);
}

static void child_reset_signals(void)
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
	/* a copy: the memory is the keeper's, new descriptors are not */
	struct cgroup_fds cg = a->parts->cgroup;
	int fds[BOOT_FD_END - BOOT_FD_LISTEN + 1] = {
		a->listener,	cg.commands,	      cg.tasks[CGROUP_MEMORY], cg.oom,
		cg.pids_events, a->parts->idmap.lock, a->host->self,	       a->host->init,
	};
	static char name[] = "lodge-init";
	char *argv[] = { name, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	check_sys(null < 0 ? -errno : 0);
	begin_step("session");
	if (!hook_weak("session"))
		(void)setsid();
	begin_step("network namespace");
	check_sys(a->parts->idmap.netns >= 0 && setns(a->parts->idmap.netns, CLONE_NEWNET) < 0
			  ? -errno
			  : 0);
	begin_step("oom score");
	check_sys(confine_oom_score());
	child_cgroup(&cg, a->limits);
	fds[BOOT_FD_OOM - BOOT_FD_LISTEN] = cg.oom;
	child_tree(a);
	child_reset_signals();
	umask(022);
	child_confine(a);
	child_die_with(a->host->self);
	begin_step("descriptors");
	check_sys(confine_fds(fds, BOOT_FD_END - BOOT_FD_LISTEN + 1, null));
	if (!hook_weak("closefds"))
		check_sys(sys_close_range(BOOT_FD_END + 1, ~0u, 0) < 0 ? -errno : 0);
	(void)fcntl(BOOT_FD_END, F_SETFD, FD_CLOEXEC);
	begin_step("exec");
	syscall(SYS_execveat, BOOT_FD_END, "", argv, hook_env(), AT_EMPTY_PATH);
	check_sys(-errno);
	child_fail();
}

static bool has_time_namespaces(void)
{
	static int has = -1;

	if (has < 0)
		has = access("/proc/self/ns/time", F_OK) == 0;
	return has;
}

/* clone3 makes the time namespace too. A process that unshares it enters it at exec only since
 * Linux 6.2, and before that it cannot share memory with a child, as lodge-init does. */
static uint64_t namespace_flags(void)
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
	struct clone_args clone = { .flags = CLONE_VM | CLONE_VFORK | namespace_flags(),
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
		(void)waitpid((pid_t)pid, NULL, 0); /* it has already exited */
		*err = child.err;
		return -1;
	}
	if (waitpid((pid_t)pid, NULL, WNOHANG) == (pid_t)pid)
		return err_set(err, ERR_INTERNAL, "the new process died in step: %s", child.step);
	*ret_pid = (pid_t)pid;
	return 0;
}

static _Noreturn void claim_main(int pidfd, const struct rootfs *root)
{
	begin_step("join");
	check_sys(setns(pidfd, CLONE_NEWNS | CLONE_NEWUTS) < 0 ? -errno : 0);
	begin_step("root");
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
	return child.step ? err_set(err, ERR_INTERNAL, "the claim process died in step: %s",
				    child.step)
			  : 0;
}

int sandbox_spawn_seal_init(const char *path, struct err *err)
{
	auto_close int file = open(path, O_RDONLY | O_CLOEXEC);
	/* Kernels before 6.3 refuse MFD_EXEC (0x10), later ones may require it (vm.memfd_noexec) */
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
