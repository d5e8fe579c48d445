/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: a few harmless ones, and no way to others. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool in_list(const char *list, const char *name)
{
	char padded[300];

	snprintf(padded, sizeof(padded), " %s ", name);
	return strstr(list, padded);
}

static int only_expected(const struct check *c)
{
	DIR *dir = opendir("/dev");
	struct dirent *e;
	int ret = HELD;

	(void)c;
	if (!dir)
		return trouble("/dev: %s", strerror(errno));
	while (ret == HELD && (e = readdir(dir)))
		if (e->d_name[0] != '.' &&
		    !in_list(" null zero full random urandom tty ptmx pts shm mqueue fd stdin "
			     "stdout stderr console ",
			     e->d_name))
			ret = broken("there is a /dev/%s", e->d_name);
	closedir(dir);
	return ret;
}

static bool is_harmless(dev_t dev)
{
	unsigned maj = major(dev), min = minor(dev);

	if (maj == 1)
		return min == 3 || min == 5 || min == 7 || min == 8 || min == 9;
	if (maj == 5)
		return min == 0 || min == 2;
	return maj >= 136 && maj <= 143;
}

static int scan_nodes(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	struct stat st;
	int ret = HELD;

	if (!dir)
		return HELD;
	while (ret == HELD && (e = readdir(dir))) {
		if (e->d_name[0] == '.' ||
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISBLK(st.st_mode) || (S_ISCHR(st.st_mode) && !is_harmless(st.st_rdev)))
			ret = broken("%s/%s is device %u:%u", path, e->d_name, major(st.st_rdev),
				     minor(st.st_rdev));
	}
	closedir(dir);
	return ret;
}

static int only_harmless(const struct check *c)
{
	static const char *const dirs[] = { "/dev",	   "/dev/pts", "/dev/shm",  "/dev/mqueue",
					    "/dev/mapper", "/dev/net", "/dev/block" };

	(void)c;
	for (size_t i = 0; i < LEN(dirs); i++) {
		int ret = scan_nodes(dirs[i]);

		if (ret != HELD)
			return ret;
	}
	return HELD;
}

/* Nothing is opened: existence is already a failure. */
static int absent(const struct check *c)
{
	char list[256], path[64], *save = NULL;
	struct stat st;

	snprintf(list, sizeof(list), "%s", c->arg);
	for (char *p = strtok_r(list, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
		snprintf(path, sizeof(path), "/dev/%s", p);
		if (stat(path, &st) == 0)
			return broken("%s exists", path);
	}
	return HELD;
}

/* Device 1:3 would be harmless if created; so are 7:0 and 1:3 on a nodev mount. */
static int make_node(const struct check *c)
{
	mode_t type = c->arg[0] == 'b' ? S_IFBLK : S_IFCHR;
	dev_t dev = c->arg[0] == 'b' ? makedev(7, 0) : makedev(1, 3);
	static const char *const dirs[] = { "/tmp", "/dev", "/dev/shm", ".", "/var/tmp" };
	char path[64];

	for (size_t i = 0; i < LEN(dirs); i++) {
		snprintf(path, sizeof(path), "%s/escape-node.%d", dirs[i], (int)getpid());
		if (mknod(path, type | 0600, dev) < 0)
			continue;
		unlink(path);
		return broken("a device could be made in %s", dirs[i]);
	}
	return HELD;
}

static int dev_readonly(const struct check *c)
{
	struct statvfs vfs;
	int fd = open("/dev/escape-file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	(void)c;
	if (fd >= 0) {
		close(fd);
		unlink("/dev/escape-file");
		return broken("a file could be made in /dev");
	}
	if (statvfs("/dev", &vfs) == 0 && !(vfs.f_flag & ST_RDONLY))
		return broken("/dev is mounted writable");
	return HELD;
}

static int own_pts(const struct check *c)
{
	const char *host = fact("HOST_PTS");
	char dev[32];
	struct stat st;

	(void)c;
	if (!host)
		return unjudged("the host has no /dev/pts");
	if (stat("/dev/pts", &st) < 0)
		return HELD;
	snprintf(dev, sizeof(dev), "%llu", (unsigned long long)st.st_dev);
	return strcmp(dev, host) == 0 ? broken("/dev/pts is the host's") : HELD;
}

#define NO_SUCH(name, nodes)                                                                       \
	{                                                                                          \
		"devices-no-" name, "there is no /dev/" nodes, absent, BOTH, "mountns",            \
			.arg = nodes                                                               \
	}

const struct check checks_devices[] = {
	{ "devices-only-expected", "/dev has only the expected entries", only_expected, BOTH,
	  "devfull" },
	{ "devices-only-harmless", "no device but null, zero, full, random, tty, ptmx, pts",
	  only_harmless, BOTH, "devfull" },
	{ "devices-no-kmsg", "there is no /dev/kmsg", absent, BOTH, "devfull", .arg = "kmsg" },
	NO_SUCH("memory", "mem kmem port kvm"),
	NO_SUCH("disks", "vda sda nvme0n1 dm-0 mapper/control zram0 sr0"),
	NO_SUCH("loop", "loop-control loop0 btrfs-control"),
	NO_SUCH("kernel-interfaces", "fuse vsock userfaultfd net/tun cuse uinput autofs rtc0"),
	NO_SUCH("consoles", "tty0 tty1 ttyS0 vcs vcsa hvc0"),
	{ "devices-mknod-char", "no character device can be made", make_node, BOTH,
	  "userns,caps,seccomp,cgroup", .arg = "char" },
	{ "devices-mknod-block", "no block device can be made", make_node, BOTH,
	  "userns,caps,seccomp,cgroup", .arg = "block" },
	{ "devices-readonly", "/dev cannot be written", dev_readonly, BOTH, "devfull" },
	{ "devices-own-pts", "/dev/pts is the sandbox's own", own_pts, BOTH, "mountns" },
	{ 0 },
};
