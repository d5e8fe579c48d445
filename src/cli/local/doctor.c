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
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/file_io.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

enum { NOFILE_WANTED = 4096, FILE_MAX = 65536 };

/* Probes run in a process of their own. */
static char detail[DOCTOR_TEXT];

__attribute__((format(printf, 1, 2))) static void set_detail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
}

static int missing(const char *why)
{
	set_detail("%s", why);
	return -1;
}

/* ---- system calls ---------------------------------------------------------------------------- */

static int probe_kernel(void)
{
	struct utsname u;

	if (uname(&u) < 0)
		return -1;
	set_detail("%s %s %s", u.sysname, u.release, u.machine);
	return 0;
}

static int probe_pidfd(void)
{
	auto_close int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	return fd < 0 ? -1 : (int)syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0);
}

static int probe_clone3(void)
{
	int fd = -1;
	struct clone_args args = { .flags = CLONE_PIDFD,
				   .pidfd = (uint64_t)(uintptr_t)&fd,
				   .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	return pid < 0 || waitpid((pid_t)pid, NULL, 0) < 0 ? -1 : 0;
}

static int probe_openat2(void)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };

	return syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how)) < 0 ? -1 : 0;
}

static int probe_close_range(void)
{
	return (int)syscall(SYS_close_range, ~0u - 1, ~0u, 0);
}

static int probe_seccomp(void)
{
	struct sock_filter allow = { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW };
	struct sock_fprog prog = { .len = 1, .filter = &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

static int probe_landlock(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* returns the version */);

	if (abi < 0)
		return -1;
	set_detail("version %ld", abi);
	return 0;
}

/* Runs /bin/true from a sealed memfd, as lodge-init is started. */
static int probe_memfd(void)
{
	char name[] = "true", *argv[] = { name, NULL }, *envp[] = { NULL };
	auto_close int from = open("/bin/true", O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("lodge-doctor", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	struct stat st;

	if (from < 0 || fd < 0 || fstat(from, &st) < 0)
		return -1;
	while (lseek(from, 0, SEEK_CUR) < st.st_size)
		if (sendfile(fd, from, NULL, (size_t)st.st_size) <= 0) {
			errno = EIO;
			return -1;
		}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -1;
	syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
	return -1;
}

/* ---- namespaces and mounts ------------------------------------------------------------------- */

/* The child becomes root of a user namespace that holds nobody but itself. */
static int enter_userns(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r;

	if (unshare(CLONE_NEWUSER) < 0)
		return -1;
	file_printf_at(AT_FDCWD, "/proc/self/setgroups", "deny");
	r = file_printf_at(AT_FDCWD, "/proc/self/uid_map", "0 %u 1", uid);
	if (r == 0)
		r = file_printf_at(AT_FDCWD, "/proc/self/gid_map", "0 %u 1", gid);
	errno = -r;
	return r < 0 ? -1 : 0;
}

static int probe_userns(void)
{
	static const struct {
		const char *path, *blocked;
	} knobs[] = {
		{ "/proc/sys/user/max_user_namespaces", "0" },
		{ "/proc/sys/kernel/unprivileged_userns_clone", "0" },
		{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1" },
	};
	int error;

	if (enter_userns() == 0)
		return 0;
	error = errno;
	for (size_t i = 0; i < ARRAY_LEN(knobs); i++) {
		char text[16];

		if (file_read_at(AT_FDCWD, knobs[i].path, text, sizeof(text)) > 0 &&
		    strcmp(strtok(text, "\n") ?: "", knobs[i].blocked) == 0)
			set_detail("%s is %s", knobs[i].path, text);
	}
	errno = error;
	return -1;
}

static int probe_namespace(int flag)
{
	return enter_userns() < 0 ? -1 : unshare(flag);
}

/* Becomes root of a user and a mount namespace, in an empty tmpfs. */
static int enter_scratch(void)
{
	if (enter_userns() < 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0)
		return -1;
	return chdir("/tmp");
}

static int probe_overlay(void)
{
	if (enter_scratch() < 0 || mkdir("l", 0755) < 0 || mkdir("u", 0755) < 0 ||
	    mkdir("w", 0755) < 0 || mkdir("m", 0755) < 0 ||
	    mount("overlay", "m", "overlay", 0, "lowerdir=l,upperdir=u,workdir=w") < 0)
		return -1;
	return mkdir("m/x", 0755);
}

static int probe_mount_api(void)
{
	int fs, mnt;

	if (enter_scratch() < 0)
		return -1;
	fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	mnt = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID);
	if (mnt < 0 || mkdir("m", 0755) < 0 ||
	    syscall(SYS_move_mount, mnt, "", AT_FDCWD, "m", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -1;
	return syscall(SYS_open_tree, AT_FDCWD, "m", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) < 0
		       ? -errno
		       : 0;
}

/* The user namespace of a child that waits until it is killed. */
static int other_userns(pid_t *ret)
{
	static const char *const maps[] = { "uid_map", "gid_map" };
	char path[64];
	int p[2];
	pid_t pid;

	if (pipe(p) < 0)
		return -1;
	pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWUSER) < 0 || write(p[1], "x", 1) < 0)
			_exit(1);
		pause();
		_exit(0);
	}
	close(p[1]);
	*ret = pid;
	errno = EPERM;
	if (read(p[0], path, 1) != 1)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, maps[i]);
		if (file_printf_at(AT_FDCWD, path, "0 100000 65536") < 0) {
			errno = EPERM;
			return -1;
		}
	}
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int probe_idmap(void)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	pid_t pid = 0;
	int tree, ns, r, error;

	if (geteuid() != 0) {
		set_detail("not needed without root");
		return 0;
	}
	ns = other_userns(&pid);
	if (ns < 0)
		return -1;
	attr.userns_fd = (uint64_t)ns;
	tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	r = tree < 0
		    ? -1
		    : (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr));
	error = errno;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	errno = error;
	return r;
}

/* ---- host ------------------------------------------------------------------------------------ */

static bool has_line(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += n)
		if ((p == text || strchr(" \t\n:", p[-1])) && strchr(" \t\n:", p[n]))
			return true;
	return false;
}

/* Creates a group, looks for a file in it, and removes it. */
static int try_group(const char *parent, const char *file)
{
	char path[512], inside[600];
	int r;

	snprintf(path, sizeof(path), "%s/lodge-doctor-%d", parent, getpid());
	snprintf(inside, sizeof(inside), "%s/%s", path, file);
	if (mkdir(path, 0755) < 0)
		return -1;
	r = access(inside, F_OK);
	return rmdir(path) < 0 ? -1 : r;
}

static int probe_v1(void)
{
	static const char *const roots[] = { "/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu",
					     "/sys/fs/cgroup/pids" };

	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		if (try_group(roots[i], "") < 0) {
			set_detail("cgroup v1: no permission to create groups in %s", roots[i]);
			return -1;
		}
	set_detail("cgroup v1: memory, cpu, pids");
	return 0;
}

/* The cgroup v2 group of this process, which may be delegated to the user. */
static int own_v2_group(char *ret, size_t size)
{
	char text[4096], *line = NULL;

	if (file_read_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) >= 0)
		line = strstr(text, "0::/");
	errno = ENOENT;
	if (!line)
		return -1;
	snprintf(ret, size, "/sys/fs/cgroup%.*s", (int)strcspn(line + 3, "\n"), line + 3);
	return 0;
}

static int probe_cgroups(void)
{
	static const char *const wanted[] = { "memory", "cpu", "pids" };
	char text[4096], group[512] = "/sys/fs/cgroup", file[600];
	int r;

	if (access("/sys/fs/cgroup/cgroup.controllers", R_OK) < 0)
		return probe_v1();
	if (geteuid() != 0 && own_v2_group(group, sizeof(group)) < 0)
		return -1;
	snprintf(file, sizeof(file), "%s/cgroup.controllers", group);
	if (file_read_at(AT_FDCWD, file, text, sizeof(text)) < 0) {
		errno = ENOENT;
		return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		if (!has_line(text, wanted[i])) {
			set_detail("cgroup v2, %s: no %s controller", group, wanted[i]);
			return -1;
		}
	r = try_group(group, "");
	set_detail(r < 0 ? "cgroup v2: no permission to create groups in %s" : "cgroup v2, %s",
		   group);
	return r;
}

/* The root group has no such file, but its children do. */
static int probe_kill(void)
{
	char path[600], group[512];

	if (own_v2_group(group, sizeof(group)) == 0) {
		snprintf(path, sizeof(path), "%s/cgroup.kill", group);
		if (access(path, F_OK) == 0)
			return 0;
	}
	if (try_group("/sys/fs/cgroup", "cgroup.kill") == 0 ||
	    try_group("/sys/fs/cgroup/unified", "cgroup.kill") == 0)
		return 0;
	errno = ENOENT;
	return -1;
}

static bool in_path(const char *program)
{
	static const char *const dirs[] = { "/usr/sbin", "/usr/bin", "/sbin", "/bin",
					    "/usr/local/bin" };
	char path[256];

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", dirs[i], program);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static int probe_volume(void)
{
	char text[FILE_MAX];

	if (file_read_at(AT_FDCWD, "/proc/filesystems", text, sizeof(text)) < 0 ||
	    !has_line(text, "btrfs"))
		return missing("kernel module btrfs is not loaded");
	if (access("/dev/loop-control", R_OK | W_OK) < 0)
		return missing("no permission to use loop devices");
	if (!in_path("mkfs.btrfs"))
		return missing("mkfs.btrfs is not installed");
	return 0;
}

static int probe_subuid(void)
{
	const struct passwd *pw = getpwuid(geteuid());
	char text[FILE_MAX];

	if (geteuid() == 0) {
		set_detail("not needed as root");
		return 0;
	}
	if (file_read_at(AT_FDCWD, "/etc/subuid", text, sizeof(text)) < 0 || !pw ||
	    !has_line(text, pw->pw_name))
		return missing("no range for this user in /etc/subuid");
	if (!in_path("newuidmap") || !in_path("newgidmap"))
		return missing("newuidmap is not installed");
	return 0;
}

static int probe_nofile(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return -1;
	if (r.rlim_max == RLIM_INFINITY)
		set_detail("unlimited");
	else
		set_detail("%llu", (unsigned long long)r.rlim_max);
	return r.rlim_max < NOFILE_WANTED ? -1 : 0;
}

/* The keeper sets RLIMIT_CORE to 1, with which the kernel starts no handler (confine_core()). An
 * ordinary user cannot raise it from 0, and it has no effect on a socket (Linux 6.16). */
static int probe_core(void)
{
	struct rlimit r = { 0, 0 };
	char text[256];

	if (file_read_at(AT_FDCWD, "/proc/sys/kernel/core_pattern", text, sizeof(text)) < 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	set_detail("%.100s", text);
	if (text[0] != '|')
		return text[0] == '@' ? -1 : 0;
	return getrlimit(RLIMIT_CORE, &r) == 0 && r.rlim_max == 0 && geteuid() != 0 ? -1 : 0;
}

/* ---- the list -------------------------------------------------------------------------------- */

#define USERNS_ADVICE                                                                              \
	"sysctl -w user.max_user_namespaces=15000; if they exist, also set "                       \
	"kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0"
#define KERNEL_ADVICE "upgrade the kernel to 5.19 or newer (Debian 12 and later)"

const struct doctor_check doctor_checks[] = {
	{ "kernel", NEEDED, KERNEL_ADVICE, probe_kernel },
	{ "clone3", NEEDED, KERNEL_ADVICE, probe_clone3 },
	{ "pidfd", NEEDED, KERNEL_ADVICE, probe_pidfd },
	{ "openat2", NEEDED, KERNEL_ADVICE, probe_openat2 },
	{ "close_range", NEEDED, KERNEL_ADVICE, probe_close_range },
	{ "seccomp filter", NEEDED,
	  "use a kernel with CONFIG_SECCOMP_FILTER; in a container, allow seccomp(2)",
	  probe_seccomp },
	{ "sealed memfd, execveat", NEEDED, "sysctl -w vm.memfd_noexec=0", probe_memfd },
	{ "landlock", OPTIONAL,
	  "add landlock to the kernel parameter lsm=; without it, command policies are advisory",
	  probe_landlock },
	{ "user namespace", NEEDED, USERNS_ADVICE, probe_userns },
	{ "mount namespace", NEEDED, KERNEL_ADVICE, .namespace = CLONE_NEWNS },
	{ "pid namespace", NEEDED, KERNEL_ADVICE, .namespace = CLONE_NEWPID },
	{ "network namespace", NEEDED, KERNEL_ADVICE, .namespace = CLONE_NEWNET },
	{ "ipc namespace", NEEDED, KERNEL_ADVICE, .namespace = CLONE_NEWIPC },
	{ "uts namespace", NEEDED, KERNEL_ADVICE, .namespace = CLONE_NEWUTS },
	{ "cgroup namespace", NEEDED, KERNEL_ADVICE, .namespace = CLONE_NEWCGROUP },
	{ "time namespace", OPTIONAL, "sandboxes see the uptime of the host",
	  .namespace = CLONE_NEWTIME },
	{ "overlay", NEEDED, "modprobe overlay; needs Linux 5.11 or newer", probe_overlay },
	{ "new mount API", NEEDED, KERNEL_ADVICE, probe_mount_api },
	{ "idmapped mounts", NEEDED, "put /usr on ext4, btrfs or xfs, with Linux 5.19 or newer",
	  probe_idmap },
	{ "cgroup controllers", OPTIONAL,
	  "memory, CPU and process limits are NOT enforced; without root, start lodge with: "
	  "systemd-run --user -p Delegate=yes --scope",
	  probe_cgroups },
	{ "cgroup.kill", OPTIONAL,
	  "processes of a command are killed one by one; it needs Linux 5.14 and, without root, a "
	  "delegated cgroup",
	  probe_kill },
	{ "btrfs volume", OPTIONAL,
	  "disk limits are NOT enforced; as root: modprobe btrfs loop && apt install btrfs-progs",
	  probe_volume },
	{ "subordinate ids", OPTIONAL, "not used yet: rootless sandboxes have a single user",
	  probe_subuid },
	{ "open files", OPTIONAL, "raise the hard limit (ulimit -Hn, LimitNOFILE=) to 4096 or more",
	  probe_nofile },
	{ "core dumps", OPTIONAL,
	  "a crash in a sandbox reaches this program on the host; fix: sysctl -w "
	  "kernel.core_pattern=core",
	  probe_core },
	{ NULL },
};

int doctor_probe(const struct doctor_check *c, char ret_detail[DOCTOR_TEXT])
{
	int r = c->probe ? c->probe() : probe_namespace(c->namespace);

	if (r < 0 && !*detail)
		set_detail("%s", strerrordesc_np(errno));
	memcpy(ret_detail, detail, DOCTOR_TEXT);
	return r;
}
