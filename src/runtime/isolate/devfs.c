/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/isolate/devfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/test_hook.h"
#include "runtime/mount.h"
#include "runtime/linux_calls.h"

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
	{ "ptmx", "pts/ptmx" },		 { "fd", "/proc/self/fd" },
	{ "stdin", "/proc/self/fd/0" },	 { "stdout", "/proc/self/fd/1" },
	{ "stderr", "/proc/self/fd/2" },
};

static int make_node(int tree, const char *name, unsigned major, unsigned minor)
{
	if (mknodat(tree, name, S_IFCHR | 0666, makedev(major, minor)) < 0)
		return -errno;
	return fchmodat(tree, name, 0666, 0) < 0 ? -errno : 0;
}

/* An ordinary user cannot make device nodes. Binds those of the host over empty files, after
 * checking their device numbers. */
static int bind_node(int tree, const char *name, unsigned major, unsigned minor)
{
	auto_close int host = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int mnt =
		host < 0 ? -1
			 : mount_clone(host, name,
				       SYS_ATTR_RDONLY | SYS_ATTR_NOSUID | SYS_ATTR_NOEXEC, -1);
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

static int make_entries(int tree)
{
	if (mkdirat(tree, "pts", 0755) < 0 || mkdirat(tree, "shm", 0777) < 0 ||
	    fchmodat(tree, "shm", 01777, 0) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlinkat(links[i].target, tree, links[i].name) < 0)
			return -errno;
	return 0;
}

typedef int node_fn(int tree, const char *name, unsigned major, unsigned minor);

static int each_node(int tree, node_fn *fn)
{
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		int r = fn(tree, nodes[i].name, nodes[i].major, nodes[i].minor);

		if (r < 0)
			return r;
	}
	return 0;
}

static int make_pts(gid_t tty_gid)
{
	char gid[16];
	const struct mount_option options[] = { { "newinstance", NULL },
						{ "ptmxmode", "0666" },
						{ "mode", "0620" },
						{ "gid", gid },
						{ "max", "64" } };

	snprintf(gid, sizeof(gid), "%u", tty_gid);
	return mount_new("devpts", options, ARRAY_LEN(options) - hook_weak("devfull"),
			 SYS_ATTR_NOSUID | SYS_ATTR_NOEXEC);
}

int devfs_make(bool rootless, gid_t tty_gid, struct devfs *ret)
{
	static const struct mount_option options[] = { { "size", "256m" },
						       { "nr_inodes", "10000" },
						       { "mode", "0755" } };
	auto_close int tree = mount_new("tmpfs", options, ARRAY_LEN(options), SYS_ATTR_NOSUID);
	auto_close int pts = make_pts(tty_gid);
	int r = tree < 0 ? tree : pts;

	if (r >= 0)
		r = make_entries(tree);
	if (r == 0 && !rootless)
		r = each_node(tree, make_node);
	if (r == 0 && !rootless && hook_weak("devfull"))
		r = make_node(tree, "kmsg", 1, 11);
	if (r < 0)
		return r;
	*ret = (struct devfs){ steal_fd(&tree), steal_fd(&pts) };
	return 0;
}

void devfs_close(struct devfs *d)
{
	close_fd(&d->tree);
	close_fd(&d->pts);
}

/* The only writable directory; the rest of the file system becomes read-only. */
static int attach_shm(int tree)
{
	auto_close int mnt = mount_clone(tree, "shm", SYS_ATTR_NOSUID | SYS_ATTR_NODEV, -1);

	return mnt < 0 ? mnt : mount_attach(mnt, tree, "shm");
}

int devfs_attach(const struct devfs *d, bool rootless)
{
	int r = mount_attach(d->tree, AT_FDCWD, "dev");

	if (r == 0 && rootless)
		r = each_node(d->tree, bind_node);
	if (r == 0)
		r = mount_attach(d->pts, d->tree, "pts");
	if (r == 0)
		r = attach_shm(d->tree);
	return r < 0 || hook_weak("devfull") ? r : mount_set(d->tree, SYS_ATTR_RDONLY, -1);
}
