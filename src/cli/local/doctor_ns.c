/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of namespaces and mounts. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "cli/local/doctor.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* The child becomes root of a user namespace that holds nobody but itself. 0 or -errno. */
static int doctor_enter_userns(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r;

	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	file_printf_at(AT_FDCWD, "/proc/self/setgroups", "deny");
	r = file_printf_at(AT_FDCWD, "/proc/self/uid_map", "0 %u 1", uid);
	if (r < 0)
		return r;
	return file_printf_at(AT_FDCWD, "/proc/self/gid_map", "0 %u 1", gid);
}

static int probe_userns(int arg, char detail[DOCTOR_TEXT])
{
	static const struct {
		const char *path, *blocked;
	} knobs[] = {
		{ "/proc/sys/user/max_user_namespaces", "0" },
		{ "/proc/sys/kernel/unprivileged_userns_clone", "0" },
		{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1" },
	};
	int r = doctor_enter_userns();

	(void)arg;
	if (r == 0)
		return 0;
	for (size_t i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
		char text[16] = "";
		auto_close int fd = open(knobs[i].path, O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0) {
			text[strcspn(text, "\n")] = '\0';
			if (!strcmp(text, knobs[i].blocked))
				snprintf(detail, DOCTOR_TEXT, "%s is %s", knobs[i].path, text);
		}
	}
	return r;
}

static int probe_namespace(int flag, char detail[DOCTOR_TEXT])
{
	int r = doctor_enter_userns();

	(void)detail;
	if (r < 0)
		return r;
	return unshare(flag) < 0 ? -errno : 0;
}

/* Becomes root of a user and a mount namespace, in an empty tmpfs. */
static int enter_scratch(void)
{
	int r = doctor_enter_userns();

	if (r < 0)
		return r;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0 || chdir("/tmp") < 0)
		return -errno;
	return 0;
}

static int probe_overlay(int arg, char detail[DOCTOR_TEXT])
{
	int r = enter_scratch();

	(void)arg;
	(void)detail;
	if (r < 0)
		return r;
	if (mkdir("l", 0755) < 0 || mkdir("u", 0755) < 0 || mkdir("w", 0755) < 0 ||
	    mkdir("m", 0755) < 0)
		return -errno;
	if (mount("overlay", "m", "overlay", 0, "lowerdir=l,upperdir=u,workdir=w") < 0)
		return -errno;
	return mkdir("m/x", 0755) < 0 ? -errno : 0;
}

static int probe_mount_api(int arg, char detail[DOCTOR_TEXT])
{
	int r = enter_scratch(), fs, mnt;

	(void)arg;
	(void)detail;
	if (r < 0)
		return r;
	fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	mnt = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID);
	if (mnt < 0 || mkdir("m", 0755) < 0)
		return -errno;
	if (syscall(SYS_move_mount, mnt, "", AT_FDCWD, "m", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return syscall(SYS_open_tree, AT_FDCWD, "m", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) < 0
		       ? -errno
		       : 0;
}

/* The user namespace of a child that waits until it is killed. */
static int other_userns(pid_t *ret)
{
	char path[64];
	int p[2], fd;
	pid_t pid;

	if (pipe(p) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWUSER) < 0 || write(p[1], "x", 1) < 0)
			_exit(1);
		pause();
		_exit(0);
	}
	close(p[1]);
	*ret = pid;
	if (read(p[0], path, 1) != 1)
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	if (file_printf_at(AT_FDCWD, path, "0 100000 65536") < 0)
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	if (file_printf_at(AT_FDCWD, path, "0 100000 65536") < 0)
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int probe_idmap(int arg, char detail[DOCTOR_TEXT])
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	pid_t pid = 0;
	int tree, ns, r = 0;

	(void)arg;
	if (geteuid() != 0) {
		snprintf(detail, DOCTOR_TEXT, "not needed without root");
		return 0;
	}
	ns = other_userns(&pid);
	if (ns < 0)
		return ns;
	attr.userns_fd = (uint64_t)ns;
	tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 ||
	    syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		r = -errno;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return r;
}

#define USERNS_ADVICE                                                                              \
	"sysctl -w user.max_user_namespaces=15000; if they exist, also set "                       \
	"kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0"
#define KERNEL_ADVICE "upgrade the kernel to 5.19 or newer (Debian 12 and later)"

const struct doctor_check doctor_namespaces[] = {
	{ "user namespace", DOCTOR_NEEDED, probe_userns, 0, USERNS_ADVICE },
	{ "mount namespace", DOCTOR_NEEDED, probe_namespace, CLONE_NEWNS, KERNEL_ADVICE },
	{ "pid namespace", DOCTOR_NEEDED, probe_namespace, CLONE_NEWPID, KERNEL_ADVICE },
	{ "network namespace", DOCTOR_NEEDED, probe_namespace, CLONE_NEWNET, KERNEL_ADVICE },
	{ "ipc namespace", DOCTOR_NEEDED, probe_namespace, CLONE_NEWIPC, KERNEL_ADVICE },
	{ "uts namespace", DOCTOR_NEEDED, probe_namespace, CLONE_NEWUTS, KERNEL_ADVICE },
	{ "cgroup namespace", DOCTOR_NEEDED, probe_namespace, CLONE_NEWCGROUP, KERNEL_ADVICE },
	{ "time namespace", DOCTOR_OPTIONAL, probe_namespace, CLONE_NEWTIME,
	  "sandboxes see the uptime of the host" },
	{ "overlay", DOCTOR_NEEDED, probe_overlay, 0,
	  "modprobe overlay; needs Linux 5.11 or newer" },
	{ "new mount API", DOCTOR_NEEDED, probe_mount_api, 0, KERNEL_ADVICE },
	{ "idmapped mounts", DOCTOR_NEEDED, probe_idmap, 0,
	  "put /usr on ext4, btrfs or xfs, with Linux 5.19 or newer" },
	{ NULL },
};
