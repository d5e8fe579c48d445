/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dev.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/hook.h"
#include "runtime/mount.h"
#include "runtime/sys.h"

static const struct {
	const char *name;
	unsigned major, minor;
} nodes[] = {
	{ "null", 1, 3 },   { "zero", 1, 5 },	 { "full", 1, 7 },
	{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};

static const struct {
	const char *name, *target;
} links[] = {
	{ "ptmx", "pts/ptmx" },		{ "fd", "/proc/self/fd" },
	{ "stdin", "/proc/self/fd/0" }, { "stdout", "/proc/self/fd/1" },
	{ "stderr", "/proc/self/fd/2" },
};

static int make_node(int tree, const char *name, unsigned major, unsigned minor)
{
	if (mknodat(tree, name, S_IFCHR | 0666, makedev(major, minor)) < 0)
		return -errno;
	return fchmodat(tree, name, 0666, 0) < 0 ? -errno : 0;
}

/* An ordinary user makes no nodes: the host's own are bound over empty files, after checking that
 * they are what they are called. */
static int bind_node(int tree, const char *name, unsigned major, unsigned minor)
{
	auto_close int host = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int mnt = host < 0 ? -1 : mount_clone(host, name, SYS_ATTR_NOSUID | SYS_ATTR_NOEXEC, -1);
	auto_close int file = openat(tree, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
	struct stat st;

	if (host < 0 || file < 0)
		return -errno;
	if (mnt < 0)
		return mnt;
	if (fstat(mnt, &st) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(major, minor))
		return -ENODEV;
	return mount_attach(mnt, tree, name);
}

static int fill(int tree, bool rootless)
{
	if (mkdirat(tree, "pts", 0755) < 0 || mkdirat(tree, "shm", 0777) < 0 ||
	    fchmodat(tree, "shm", 01777, 0) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlinkat(links[i].target, tree, links[i].name) < 0)
			return -errno;
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		int r = (rootless ? bind_node : make_node)(tree, nodes[i].name, nodes[i].major,
							   nodes[i].minor);
		if (r < 0)
			return r;
	}
	if (hook_weak("devfull") && !rootless)
		return make_node(tree, "kmsg", 1, 11);
	return 0;
}

static int attach_pts(gid_t tty_gid)
{
	char gid[16];
	const struct mount_option options[] = {
		{ "newinstance", NULL }, { "ptmxmode", "0666" }, { "mode", "0620" }, { "gid", gid },
		{ "max", "64" }
	};
	auto_close int mnt = -1;

	snprintf(gid, sizeof(gid), "%u", tty_gid);
	mnt = mount_new("devpts", options, ARRAY_LEN(options) - hook_weak("devfull"),
			SYS_ATTR_NOSUID | SYS_ATTR_NOEXEC);
	return mnt < 0 ? mnt : mount_attach(mnt, AT_FDCWD, "dev/pts");
}

/* The one writable part of a file system that is read-only everywhere else. */
static int attach_shm(int tree)
{
	auto_close int mnt = mount_clone(tree, "shm", SYS_ATTR_NOSUID | SYS_ATTR_NODEV, -1);

	return mnt < 0 ? mnt : mount_attach(mnt, tree, "shm");
}

int dev_attach(bool rootless, gid_t tty_gid)
{
	static const struct mount_option options[] = { { "size", "256m" }, { "nr_inodes", "10000" },
						       { "mode", "0755" } };
	auto_close int mnt = mount_new("tmpfs", options, ARRAY_LEN(options), SYS_ATTR_NOSUID);
	auto_close int tree = -1;
	int r;

	if (mnt < 0)
		return mnt;
	r = mount_attach(mnt, AT_FDCWD, "dev");
	if (r < 0)
		return r;
	tree = open("dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree < 0)
		return -errno;
	r = fill(tree, rootless);
	if (r == 0)
		r = attach_pts(tty_gid);
	if (r == 0)
		r = attach_shm(tree);
	return r < 0 || hook_weak("devfull") ? r : mount_set(mnt, SYS_ATTR_RDONLY, -1);
}
