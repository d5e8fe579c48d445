/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/loop_volume.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/file_io.h"
#include "runtime/mount.h"
#include "runtime/linux_calls.h"
#include "runtime/storage/volume_space.h"
#include "wire/limits.h"

#define VOLUME_MIN (1ull << 30)

static const char *const programs[] = { "/usr/sbin/mkfs.btrfs", "/sbin/mkfs.btrfs",
					"/usr/bin/mkfs.btrfs" };

bool loop_volume_is_possible(int home)
{
	if (access("/dev/loop-control", R_OK | W_OK) < 0)
		return false;
	if (faccessat(home, "volume.btrfs", F_OK, 0) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (access(programs[i], X_OK) == 0)
			return true;
	return false;
}

static int run_mkfs(char *path)
{
	static char name[] = "mkfs.btrfs", quiet[] = "-q";
	char *env[] = { NULL };

	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		char *argv[] = { name, quiet, path, NULL };
		pid_t pid;
		int status;

		if (posix_spawn(&pid, programs[i], NULL, NULL, argv, env) != 0)
			continue;
		if (waitpid(pid, &status, 0) != pid)
			return -errno;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
			continue;
		return status == 0 ? 0 : -EIO;
	}
	return -ENOENT;
}

/* The size is half of the free space, so that a host of which nobody else takes much never has to
 * reserve it (volume_space.h). */
static int make_file(int home, const char *name, struct err *err)
{
	auto_close int fd = -1;
	struct statvfs fs;
	char path[64];
	uint64_t size;
	int r;

	/* A new file: the mkfs of a killed keeper may still write to the old one. */
	(void)unlinkat(home, name, 0);
	fd = openat(home, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fstatvfs(fd, &fs) < 0)
		return err_sys(err, errno, "%s", name);
	size = (uint64_t)fs.f_bavail * fs.f_frsize / 2 & ~0xfffffull;
	if (size < VOLUME_MIN)
		return err_set(err, ERR_LIMIT,
			       "not enough space for a volume: %llu MiB free, 2048 MiB needed",
			       (unsigned long long)(size >> 19));
	if (ftruncate(fd, (off_t)size) < 0)
		return err_sys(err, errno, "%s", name);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	r = run_mkfs(path);
	return r < 0 ? err_sys(err, -r, "mkfs.btrfs (package btrfs-progs)") : 0;
}

static int make_once(int home, struct err *err)
{
	auto_close int lock =
		openat(home, "volume.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (lock < 0 || flock(lock, LOCK_EX) < 0)
		return err_sys(err, errno, "volume.lock");
	if (faccessat(home, "volume.btrfs", F_OK, 0) == 0)
		return 0;
	if (make_file(home, "volume.new", err) < 0) {
		(void)unlinkat(home, "volume.new", 0);
		return -1;
	}
	if (renameat(home, "volume.new", home, "volume.btrfs") < 0)
		return err_sys(err, errno, "volume.btrfs");
	return 0;
}

/* Finds the loop device that already has this file, because sandboxes of an earlier keeper use it.
 * The kernel refuses to mount the same btrfs from a second device. */
struct device_search {
	const struct stat *file;
	int found;
};

static int match_device(int dir, const char *name, void *arg)
{
	struct device_search *s = arg;
	struct loop_info64 info;
	char path[300];
	int fd;

	(void)dir;
	if (strncmp(name, "loop", 4) != 0)
		return 0;
	snprintf(path, sizeof(path), "/dev/%s", name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_inode == s->file->st_ino &&
	    info.lo_device == s->file->st_dev) {
		s->found = fd;
		return 1;
	}
	close(fd);
	return 0;
}

static int find_device(const struct stat *file)
{
	struct device_search s = { file, -1 };

	(void)file_each_at(AT_FDCWD, "/sys/block", match_device, &s);
	return s.found;
}

static int attach_device(int file, struct err *err)
{
	auto_close int ctl = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = { .fd = (unsigned)file,
				      .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };

	if (ctl < 0)
		return err_sys(err, errno, "/dev/loop-control");
	for (int tries = 0; tries < 32; tries++) {
		int n = ioctl(ctl, LOOP_CTL_GET_FREE);
		auto_close int dev = -1;
		char path[32];

		if (n < 0)
			return err_sys(err, errno, "free loop device");
		snprintf(path, sizeof(path), "/dev/loop%d", n);
		dev = open(path, O_RDWR | O_CLOEXEC);
		if (dev < 0)
			return err_sys(err, errno, "%s", path);
		if (ioctl(dev, LOOP_CONFIGURE, &config) == 0)
			return steal_fd(&dev);
		if (errno != EBUSY)
			return err_sys(err, errno, "configure %s", path);
	}
	return err_set(err, ERR_LIMIT, "no free loop device");
}

/* What the caller can do about it, without a path of the host. */
static int fail_mount(int error, bool in_use, struct err *err)
{
	if (in_use && (error == EINVAL || error == EROFS || error == EBUSY)) {
		err_set(err, ERR_UNAVAILABLE,
			"the volume turned read-only after a failed write and is still in use; "
			"it is mounted again once its sandboxes have ended");
		err->sys = EROFS;
		return -1;
	}
	err_sys(err, error,
		"cannot mount volume.btrfs; see the kernel log, and check the file with "
		"`btrfs check` or restore a backup");
	err->code = ERR_UNAVAILABLE;
	return -1;
}

static int fail_full(struct err *err)
{
	err_set(err, ERR_LIMIT,
		"the server's disk is full, so the volume cannot be mounted; free some space");
	err->sys = ENOSPC;
	return -1;
}

/* Without discard: volume_space returns freed space, and only while the host has enough. */
static int mount_device(int dev, int scratch, bool in_use, struct err *err)
{
	char path[64], name[64];
	struct mount_option options[] = { { "source", name }, { "nodiscard", NULL } };
	auto_close int mnt = -1;
	struct stat st;
	ssize_t n;
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dev);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0 || fstat(dev, &st) < 0)
		return err_sys(err, errno, "loop device");
	name[n] = 0;
	mnt = mount_new("btrfs", options, ARRAY_LEN(options),
			SYS_ATTR_NODEV | SYS_ATTR_NOSUID | SYS_ATTR_NOATIME);
	if (mnt < 0)
		return fail_mount(-mnt, in_use, err);
	r = mount_attach(mnt, scratch, "vol");
	if (r < 0)
		return err_sys(err, -r, "attach volume");
	r = openat(scratch, "vol", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return r < 0 ? err_sys(err, errno, "volume") : r;
}

static uint64_t get_reserve(int file)
{
	struct statvfs fs;

	return fstatvfs(file, &fs) < 0 ? 0
				       : limits_disk_reserve((uint64_t)fs.f_blocks * fs.f_frsize);
}

int loop_volume_open(int home, int scratch, int *ret_file, struct err *err)
{
	auto_close int file = -1;
	auto_close int lock = -1;
	auto_close int dev = -1;
	struct stat st;
	bool in_use;
	int dir;

	if (make_once(home, err) < 0)
		return -1;
	file = openat(home, "volume.btrfs", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	lock = openat(home, "volume.lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (file < 0 || lock < 0 || fstat(file, &st) < 0 || flock(lock, LOCK_EX) < 0)
		return err_sys(err, errno, "volume.btrfs");
	dev = find_device(&st);
	in_use = dev >= 0;
	if (!in_use && volume_space_prepare(file, get_reserve(file)) == -ENOSPC)
		return fail_full(err);
	if (!in_use)
		dev = attach_device(file, err);
	dir = dev < 0 ? -1 : mount_device(dev, scratch, in_use, err);
	if (dir >= 0)
		*ret_file = steal_fd(&file);
	return dir;
}

int loop_volume_extend(int file, uint64_t bytes)
{
	auto_close int dev = -1;
	struct stat st;

	if (fstat(file, &st) < 0)
		return -errno;
	dev = find_device(&st);
	if (dev < 0)
		return -ENODEV;
	if ((uint64_t)st.st_size < bytes && ftruncate(file, (off_t)bytes) < 0)
		return -errno;
	return ioctl(dev, LOOP_SET_CAPACITY) < 0 ? -errno : 0;
}

void loop_volume_close(int scratch)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/vol", scratch);
	(void)umount2(path, MNT_DETACH);
}
