/* SPDX-License-Identifier: Apache-2.0 */
/* /proc and /sys: masked, read-only and hidden files. */
#include "probe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Absent, or covered by a mount: then it is on another device than its /proc. */
static bool is_covered(const char *path)
{
	char top[PATH_MAX];
	struct stat st, base;

	snprintf(top, sizeof(top), "%.*s", (int)(1 + strcspn(path + 1, "/")), path);
	if (lstat(path, &st) < 0 || stat(top, &base) < 0)
		return true;
	return st.st_dev != base.st_dev;
}

static bool is_empty_dir(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	bool empty = true;

	if (!dir)
		return true;
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.')
			empty = false;
	closedir(dir);
	return empty;
}

/* Whether reading it returns nothing. */
static bool is_silent(const char *path)
{
	char buf[64];
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return is_empty_dir(path);
	return read_text(path, buf, sizeof(buf)) <= 0;
}

/* Masked in both ways: nothing to read, and not by file modes alone. */
static int masked(const struct check *c)
{
	char *save = NULL, list[512];

	snprintf(list, sizeof(list), "%s", c->arg);
	for (char *p = strtok_r(list, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
		if (!is_silent(p))
			return broken("%s can be read", p);
		if (!is_covered(p))
			return broken("%s is not masked (only its mode keeps us out)", p);
	}
	return held();
}

/* Closed by mode, to an id that does not exist inside. Only opened, because reading kmsg would
 * consume it. */
static int closed(const struct check *c)
{
	char *save = NULL, list[512];

	snprintf(list, sizeof(list), "%s", c->arg);
	for (char *p = strtok_r(list, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
		int fd = is_covered(p) ? -1 : open(p, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

		if (fd >= 0) {
			close(fd);
			return broken("%s can be opened", p);
		}
	}
	return held();
}

static char writable[PATH_MAX];

static int try_writing(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	int fd;

	(void)ftw;
	if (type != FTW_F || !S_ISREG(st->st_mode))
		return 0;
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return 0;
	close(fd);
	snprintf(writable, sizeof(writable), "%s", path);
	return 1;
}

/* Everything in /proc that belongs to no process. /proc/sys has its own check. */
static int nothing_writable(const struct check *c)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	int found = 0;

	(void)c;
	if (!dir)
		return trouble("/proc: %s", strerror(errno));
	while (!found && (e = readdir(dir))) {
		char path[300];

		if (e->d_type == DT_LNK || isdigit((unsigned char)e->d_name[0]) ||
		    e->d_name[0] == '.' || strcmp(e->d_name, "sys") == 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%s", e->d_name);
		found = nftw(path, try_writing, 16, FTW_PHYS) == 1;
	}
	closedir(dir);
	return found ? broken("%s can be opened for writing", writable) : held();
}

static int silent(const struct check *c)
{
	char *save = NULL, list[512];

	snprintf(list, sizeof(list), "%s", c->arg);
	for (char *p = strtok_r(list, " ", &save); p; p = strtok_r(NULL, " ", &save))
		if (!is_silent(p))
			return broken("%s can be read", p);
	return held();
}

/* Absent, on a read-only mount, or covered by something read-only or a null device. */
static int readonly(const struct check *c)
{
	char *save = NULL, list[512];
	struct statvfs vfs;
	struct statfs fs;
	struct stat st;

	snprintf(list, sizeof(list), "%s", c->arg);
	for (char *p = strtok_r(list, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
		if (stat(p, &st) < 0 || statvfs(p, &vfs) < 0)
			continue;
		/* null in its place, or a plain directory in place of sysfs */
		if ((S_ISCHR(st.st_mode) && st.st_rdev == 0x103) || statfs(p, &fs) < 0 ||
		    fs.f_type == OVERLAYFS_SUPER_MAGIC)
			continue;
		if (!(vfs.f_flag & ST_RDONLY))
			return broken("%s is on a writable mount", p);
	}
	return held();
}

static const char *const settings[] = {
	"/proc/sys/kernel/core_pattern",      "/proc/sys/kernel/modprobe",
	"/proc/sys/kernel/hostname",	      "/proc/sys/kernel/sysrq",
	"/proc/sys/kernel/ns_last_pid",	      "/proc/sys/kernel/shmmax",
	"/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/fs/mqueue/queues_max",
	"/proc/sys/fs/suid_dumpable",	      "/proc/sys/fs/protected_hardlinks",
	"/proc/sys/net/ipv4/ip_forward",      "/proc/sys/net/ipv4/ip_unprivileged_port_start",
	"/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_inotify_instances",
	"/proc/sys/vm/overcommit_memory",     "/proc/sys/vm/drop_caches",
};

static int sysctl(const struct check *c)
{
	struct statvfs vfs;

	(void)c;
	for (size_t i = 0; i < LEN(settings); i++) {
		/* only opened: nothing is written even if it could be */
		int fd = open(settings[i], O_WRONLY | O_CLOEXEC);

		if (fd >= 0) {
			close(fd);
			return broken("%s can be opened for writing", settings[i]);
		}
		if (statvfs(settings[i], &vfs) == 0 && !(vfs.f_flag & ST_RDONLY))
			return broken("%s is on a writable mount", settings[i]);
	}
	return held();
}

/* Either the file does not exist or every address in it is zero. */
static int kallsyms(const struct check *c)
{
	char buf[4096];

	(void)c;
	if (read_text("/proc/kallsyms", buf, sizeof(buf)) <= 0)
		return held();
	for (char *p = buf; *p; p += strcspn(p, "\n"), p += *p == '\n')
		if (strtoull(p, NULL, 16) != 0)
			return broken("kernel addresses can be read from /proc/kallsyms");
	return is_covered("/proc/kallsyms") ? held()
					    : broken("/proc/kallsyms is not masked (zeros only)");
}

static int hidepid(const struct check *c)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	struct stat st;
	int ret = HELD;

	(void)c;
	if (!dir)
		return trouble("/proc: %s", strerror(errno));
	while (ret == HELD && (e = readdir(dir))) {
		char path[300];

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s", e->d_name);
		if (stat(path, &st) == 0 && st.st_uid != getuid())
			ret = broken("%s belongs to uid %d and can be seen", path, (int)st.st_uid);
	}
	closedir(dir);
	if (ret == HELD && access("/proc/1/stat", F_OK) == 0)
		ret = broken("/proc/1 can be seen");
	return ret;
}

static int pid_is_foreign(const char *name)
{
	const char *mark = fact("HOST_MARK");
	char path[300], text[512];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%s/cmdline", name);
	n = read_text(path, text, sizeof(text));
	for (ssize_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
	return n > 0 && mark && strstr(text, mark);
}

static int host_processes(const struct check *c)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	int count = 0, ret = HELD;

	(void)c;
	if (!dir)
		return trouble("/proc: %s", strerror(errno));
	while (ret == HELD && (e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		count++;
		if (pid_is_foreign(e->d_name))
			ret = broken("a process of the host is /proc/%s", e->d_name);
	}
	closedir(dir);
	return ret == HELD && count > 40 ? broken("/proc shows %d processes", count) : ret;
}

static int maps(const struct check *c)
{
	char text[4096];
	unsigned long inside, outside, count;
	int fd;

	if (read_text(c->arg, text, sizeof(text)) < 0)
		return trouble("%s cannot be read", c->arg);
	for (char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		if (sscanf(p, "%lu %lu %lu", &inside, &outside, &count) != 3)
			return trouble("%s: %s", c->arg, p);
		/* without root the outer ids are those of the keeper's namespace, whose 0 is that
		 * user */
		if (outside == 0 && !is_rootless())
			return broken("id %lu inside is id 0 of the host", inside);
		if (count > 65536)
			return broken("%lu ids are mapped", count);
	}
	/* a map can be written once: the kernel refuses a second write by any process */
	fd = open(c->arg, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "0 0 1", 5) > 0)
		return broken("%s was written", c->arg);
	return held();
}

const struct check checks_proc[] = {
	{ "proc-keys", "/proc/keys and key-users are masked", masked, BOTH, "procmask",
	  .arg = "/proc/keys /proc/key-users" },
	{ "proc-timer-list", "/proc/timer_list and its like are masked", masked, BOTH, "procmask",
	  .arg = "/proc/timer_list /proc/timer_stats /proc/sched_debug /proc/latency_stats" },
	{ "proc-interrupts", "interrupt counts (key stroke timing) are masked", masked, BOTH,
	  "procmask", .arg = "/proc/interrupts" },
	{ "proc-hardware", "hardware directories below /proc are masked", masked, BOTH, "procmask",
	  .arg = "/proc/acpi /proc/asound /proc/scsi" },
	{ "proc-kcore", "the memory of the machine is closed", closed, BOTH,
	  "procmask,userns,caps,cgroup",
	  .arg = "/proc/kcore /proc/kpagecount /proc/kpageflags /proc/kpagecgroup" },
	{ "proc-kmsg", "/proc/kmsg is closed", closed, BOTH, "userns,caps,cgroup",
	  .arg = "/proc/kmsg" },
	{ "proc-slab", "figures of the kernel's memory are closed", closed, BOTH,
	  "userns,caps,cgroup", .arg = "/proc/slabinfo /proc/vmallocinfo /proc/pagetypeinfo" },
	{ "proc-nothing-writable", "nothing in /proc that acts on the host can be written",
	  nothing_writable, BOTH, "procro,userns,caps,cgroup" },
	{ "proc-sysctl", "no setting below /proc/sys can be changed", sysctl, BOTH, "procro" },
	{ "proc-kallsyms", "no kernel address can be read", kallsyms, BOTH, "procmask" },
	{ "proc-hidepid", "processes of other ids are hidden", hidepid, USER, "hidepid" },
	{ "proc-host-processes", "no process of the host is in /proc", host_processes, BOTH,
	  "pidns,hidepid" },
	{ "proc-uid-map", "no id inside is id 0 of the host", maps, BOTH, "userns,cgroup",
	  .arg = "/proc/self/uid_map" },
	{ "proc-gid-map", "no group inside is group 0 of the host", maps, BOTH, "userns,cgroup",
	  .arg = "/proc/self/gid_map" },
	{ "sys-readonly", "/sys is absent or read-only", readonly, BOTH, "mountns",
	  .arg = "/sys /sys/kernel /sys/fs /sys/fs/cgroup /sys/devices /sys/module" },
	{ "sys-masked", "firmware, debugging and power figures are absent", silent, BOTH, "mountns",
	  .arg = "/sys/firmware /sys/kernel/debug /sys/kernel/tracing /sys/kernel/security "
		 "/sys/fs/bpf /sys/fs/cgroup /sys/devices/virtual/powercap /sys/class/dmi" },
	{ 0 },
};
