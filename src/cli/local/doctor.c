/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/local/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"

/* ---- host ------------------------------------------------------------------------------------ */

enum { NOFILE_WANTED = 4096, FILE_MAX = 65536 };

static ssize_t slurp(const char *path, char *buf, size_t size)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return n;
}

static bool has_line(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += n)
		if ((p == text || strchr(" \t\n:", p[-1])) && strchr(" \t\n:", p[n]))
			return true;
	return false;
}

/* Creates and removes a group. */
static int try_mkdir(const char *parent)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/lodge-doctor-%d", parent, getpid());
	if (mkdir(path, 0755) < 0)
		return -errno;
	return rmdir(path) < 0 ? -errno : 0;
}

static int probe_v1(char detail[DOCTOR_TEXT])
{
	static const char *const roots[] = { "/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu",
					     "/sys/fs/cgroup/pids" };

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		int r = try_mkdir(roots[i]);

		if (r < 0) {
			snprintf(detail, DOCTOR_TEXT,
				 "cgroup v1: no permission to create groups in %s", roots[i]);
			return r;
		}
	}
	snprintf(detail, DOCTOR_TEXT, "cgroup v1: memory, cpu, pids");
	return 0;
}

/* The cgroup v2 group of this process, which may be delegated to the user. */
static int own_v2_group(char *ret, size_t size)
{
	char text[4096], *line;

	if (slurp("/proc/self/cgroup", text, sizeof(text)) < 0)
		return -ENOENT;
	line = strstr(text, "0::/");
	if (!line)
		return -ENOENT;
	line[strcspn(line, "\n")] = '\0';
	snprintf(ret, size, "/sys/fs/cgroup%s", line + 3);
	return 0;
}

static int probe_cgroups(int arg, char detail[DOCTOR_TEXT])
{
	static const char *const wanted[] = { "memory", "cpu", "pids" };
	char text[4096], group[512], file[600];
	int r;

	(void)arg;
	if (slurp("/sys/fs/cgroup/cgroup.controllers", text, sizeof(text)) < 0)
		return probe_v1(detail);
	r = geteuid() == 0 ? snprintf(group, sizeof(group), "/sys/fs/cgroup") > 0 ? 0 : -EIO
			   : own_v2_group(group, sizeof(group));
	if (r < 0)
		return r;
	snprintf(file, sizeof(file), "%s/cgroup.controllers", group);
	if (slurp(file, text, sizeof(text)) < 0)
		return -ENOENT;
	for (size_t i = 0; i < 3; i++)
		if (!has_line(text, wanted[i])) {
			snprintf(detail, DOCTOR_TEXT, "cgroup v2, %s: no %s controller", group,
				 wanted[i]);
			return -ENOENT;
		}
	r = try_mkdir(group);
	snprintf(detail, DOCTOR_TEXT,
		 r < 0 ? "cgroup v2: no permission to create groups in %s" : "cgroup v2, %s",
		 group);
	return r;
}

static int probe_kill(int arg, char detail[DOCTOR_TEXT])
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char path[600], group[512];

	(void)arg;
	(void)detail;
	if (own_v2_group(group, sizeof(group)) == 0) {
		snprintf(path, sizeof(path), "%s/cgroup.kill", group);
		if (access(path, F_OK) == 0)
			return 0;
	}
	for (size_t i = 0; i < 2; i++) { /* the root has none: check a child */
		snprintf(path, sizeof(path), "%s/lodge-doctor-%d", roots[i], getpid());
		if (mkdir(path, 0755) == 0) {
			char file[640];
			int r;

			snprintf(file, sizeof(file), "%s/cgroup.kill", path);
			r = access(file, F_OK);
			rmdir(path);
			if (r == 0)
				return 0;
		}
	}
	return -ENOENT;
}

static bool in_path(const char *program)
{
	static const char *const dirs[] = { "/usr/sbin", "/usr/bin", "/sbin", "/bin",
					    "/usr/local/bin" };
	char path[256];

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dirs[i], program);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static int probe_volume(int arg, char detail[DOCTOR_TEXT])
{
	char text[FILE_MAX];

	(void)arg;
	if (slurp("/proc/filesystems", text, sizeof(text)) < 0 || !has_line(text, "btrfs")) {
		snprintf(detail, DOCTOR_TEXT, "kernel module btrfs is not loaded");
		return -ENOENT;
	}
	if (access("/dev/loop-control", R_OK | W_OK) < 0) {
		snprintf(detail, DOCTOR_TEXT, "no permission to use loop devices");
		return -ENOENT;
	}
	if (!in_path("mkfs.btrfs")) {
		snprintf(detail, DOCTOR_TEXT, "mkfs.btrfs is not installed");
		return -ENOENT;
	}
	return 0;
}

static int probe_subuid(int arg, char detail[DOCTOR_TEXT])
{
	const struct passwd *pw = getpwuid(geteuid());
	char text[FILE_MAX];

	(void)arg;
	if (geteuid() == 0) {
		snprintf(detail, DOCTOR_TEXT, "not needed as root");
		return 0;
	}
	if (slurp("/etc/subuid", text, sizeof(text)) < 0 || !pw || !has_line(text, pw->pw_name)) {
		snprintf(detail, DOCTOR_TEXT, "no range for this user in /etc/subuid");
		return -ENOENT;
	}
	if (!in_path("newuidmap") || !in_path("newgidmap")) {
		snprintf(detail, DOCTOR_TEXT, "newuidmap is not installed");
		return -ENOENT;
	}
	return 0;
}

static int probe_nofile(int arg, char detail[DOCTOR_TEXT])
{
	struct rlimit r;

	(void)arg;
	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return -errno;
	if (r.rlim_max == RLIM_INFINITY)
		snprintf(detail, DOCTOR_TEXT, "unlimited");
	else
		snprintf(detail, DOCTOR_TEXT, "%llu", (unsigned long long)r.rlim_max);
	return r.rlim_max < NOFILE_WANTED ? -EMFILE : 0;
}

/* Every crash in a sandbox would start a core dump handler on the host, as root. */
static int probe_core(int arg, char detail[DOCTOR_TEXT])
{
	char text[256];

	(void)arg;
	if (slurp("/proc/sys/kernel/core_pattern", text, sizeof(text)) < 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	snprintf(detail, DOCTOR_TEXT, "%.100s", text);
	return text[0] == '|' ? -EPERM : 0;
}

const struct doctor_check doctor_host[] = {
	{ "cgroup controllers", DOCTOR_OPTIONAL, probe_cgroups, 0,
	  "memory, CPU and process limits are NOT enforced; without root, start lodge with: "
	  "systemd-run --user -p Delegate=yes --scope" },
	{ "cgroup.kill", DOCTOR_OPTIONAL, probe_kill, 0,
	  "processes of a command are killed one by one; it needs Linux 5.14 and, without root, a "
	  "delegated cgroup" },
	{ "btrfs volume", DOCTOR_OPTIONAL, probe_volume, 0,
	  "disk limits are NOT enforced; as root: modprobe btrfs loop && apt install btrfs-progs" },
	{ "subordinate ids", DOCTOR_OPTIONAL, probe_subuid, 0,
	  "not used yet: rootless sandboxes have a single user" },
	{ "open files", DOCTOR_OPTIONAL, probe_nofile, 0,
	  "raise the hard limit (ulimit -Hn, LimitNOFILE=) to 4096 or more" },
	{ "core dumps", DOCTOR_OPTIONAL, probe_core, 0,
	  "a crash in a sandbox may start this program on the host; fix: sysctl -w "
	  "kernel.core_pattern=core" },
	{ NULL },
};

/* ---- system calls ---------------------------------------------------------------------------- */

static int probe_kernel(int arg, char detail[DOCTOR_TEXT])
{
	struct utsname u;

	(void)arg;
	if (uname(&u) < 0)
		return -errno;
	snprintf(detail, DOCTOR_TEXT, "%s %s %s", u.sysname, u.release, u.machine);
	return 0;
}

static int probe_pidfd(int arg, char detail[DOCTOR_TEXT])
{
	auto_close int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	(void)arg;
	(void)detail;
	if (fd < 0 || syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) < 0)
		return -errno;
	return 0;
}

static int probe_clone3(int arg, char detail[DOCTOR_TEXT])
{
	int fd = -1, status;
	struct clone_args args = { .flags = CLONE_PIDFD,
				   .pidfd = (uint64_t)(uintptr_t)&fd,
				   .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	(void)arg;
	(void)detail;
	if (pid < 0)
		return -errno;
	if (pid == 0)
		_exit(0);
	return waitpid((pid_t)pid, &status, 0) < 0 ? -errno : 0;
}

static int probe_openat2(int arg, char detail[DOCTOR_TEXT])
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };

	(void)arg;
	(void)detail;
	return syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how)) < 0 ? -errno : 0;
}

static int probe_close_range(int arg, char detail[DOCTOR_TEXT])
{
	(void)arg;
	(void)detail;
	return syscall(SYS_close_range, ~0u - 1, ~0u, 0) < 0 ? -errno : 0;
}

static int probe_seccomp(int arg, char detail[DOCTOR_TEXT])
{
	struct sock_filter allow = { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW };
	struct sock_fprog prog = { .len = 1, .filter = &allow };

	(void)arg;
	(void)detail;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}

static int probe_landlock(int arg, char detail[DOCTOR_TEXT])
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* returns the version */);

	(void)arg;
	if (abi < 0)
		return -errno;
	snprintf(detail, DOCTOR_TEXT, "version %ld", abi);
	return 0;
}

/* Runs /bin/true from a sealed memfd, as lodge-init is started. */
static int probe_memfd(int arg, char detail[DOCTOR_TEXT])
{
	char name[] = "true", *argv[] = { name, NULL }, *envp[] = { NULL };
	auto_close int from = open("/bin/true", O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("lodge-doctor", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	struct stat st;

	(void)arg;
	(void)detail;
	if (from < 0 || fd < 0 || fstat(from, &st) < 0)
		return -errno;
	while (lseek(from, 0, SEEK_CUR) < st.st_size)
		if (sendfile(fd, from, NULL, (size_t)st.st_size) <= 0)
			return -EIO;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
	return -errno;
}

#define ADVICE "upgrade the kernel to 5.19 or newer (Debian 12 and later)"

const struct doctor_check doctor_kernel[] = {
	{ "kernel", DOCTOR_NEEDED, probe_kernel, 0, ADVICE },
	{ "clone3", DOCTOR_NEEDED, probe_clone3, 0, ADVICE },
	{ "pidfd", DOCTOR_NEEDED, probe_pidfd, 0, ADVICE },
	{ "openat2", DOCTOR_NEEDED, probe_openat2, 0, ADVICE },
	{ "close_range", DOCTOR_NEEDED, probe_close_range, 0, ADVICE },
	{ "seccomp filter", DOCTOR_NEEDED, probe_seccomp, 0,
	  "use a kernel with CONFIG_SECCOMP_FILTER; in a container, allow seccomp(2)" },
	{ "sealed memfd, execveat", DOCTOR_NEEDED, probe_memfd, 0, "sysctl -w vm.memfd_noexec=0" },
	{ "landlock", DOCTOR_OPTIONAL, probe_landlock, 0,
	  "add landlock to the kernel parameter lsm=; without it, command policies are advisory" },
	{ NULL },
};

/* ---- namespaces and mounts ------------------------------------------------------------------- */

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
