/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the configuration of the host. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/auto.h"
#include "cli/local/doctor.h"

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
