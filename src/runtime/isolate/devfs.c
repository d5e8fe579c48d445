/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/isolate/devfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
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

/* ---- size ------------------------------------------------------------------------------------ */

enum { SIZE_TEXT_MAX = 24, RESIZE_TRIES = 8, RESIZE_ROOM = 1 << 20 };

static const char *format_size(uint64_t memory_bytes, char buf[SIZE_TEXT_MAX])
{
	snprintf(buf, SIZE_TEXT_MAX, "%" PRIu64,
		 hook_weak("shm") ? 8 * memory_bytes : memory_bytes / 2);
	return buf;
}

static uint64_t used_bytes(int dir)
{
	struct statfs fs;

	if (fstatfs(dir, &fs) < 0)
		return 0;
	return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

/* The kernel refuses a size below what is in use, which can grow at this very moment: so each try
 * leaves more room above it. */
static int resize(int dir, uint64_t memory_bytes)
{
	uint64_t room = 0;
	int r = -EINVAL;

	for (int i = 0; r == -EINVAL && i < RESIZE_TRIES; i++) {
		uint64_t used = used_bytes(dir) + room;
		char size[SIZE_TEXT_MAX];
		const struct mount_option option = {
			"size", format_size(memory_bytes / 2 < used ? 2 * used : memory_bytes, size)
		};

		r = mount_reconfigure(dir, &option, 1);
		room = room ? 4 * room : RESIZE_ROOM;
	}
	return r;
}

int devfs_resize(const struct devfs *d, uint64_t memory_bytes)
{
	return resize(d->tree, memory_bytes);
}

/* An fd of the sandbox's /dev/shm; -ENODEV if something else is mounted there, such as a directory
 * of the host: that is not the sandbox's to resize. */
static int open_shm(int root)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };
	auto_close int dev = sys_openat2(root, "dev", &how);
	auto_close int shm = dev < 0 ? -1 : sys_openat2(dev, "shm", &how);
	struct stat of_dev, of_shm;

	if (shm < 0 || fstat(dev, &of_dev) < 0 || fstat(shm, &of_shm) < 0)
		return -errno;
	return of_dev.st_dev == of_shm.st_dev ? steal_fd(&shm) : -ENODEV;
}

int devfs_resize_of(pid_t init, uint64_t memory_bytes)
{
	char path[32];
	auto_close int root = -1, shm = -1;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)init);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	shm = open_shm(root);
	if (shm < 0)
		return shm == -ENODEV ? 0 : shm;
	return resize(shm, memory_bytes);
}

/* ---- making ---------------------------------------------------------------------------------- */

int devfs_make(bool rootless, gid_t tty_gid, uint64_t memory_bytes, struct devfs *ret)
{
	char size[SIZE_TEXT_MAX];
	const struct mount_option options[] = { { "size", format_size(memory_bytes, size) },
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
