/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/file.h"
#include "runtime/btrfs.h"
#include "runtime/mount.h"
#include "runtime/sys.h"
#include "runtime/volume.h"

/* A full volume still takes a few blocks. */
enum { PROBE_BYTES = 256 << 10 };

static int dir_make(int dir, const char *entry)
{
	return mkdirat(dir, entry, 0700) < 0 ? -errno : 0;
}

static int dir_drop(int dir, const char *entry)
{
	return file_remove_tree_at(dir, entry);
}

static int dir_limit(int dir, const char *entry, uint64_t bytes)
{
	(void)dir, (void)entry, (void)bytes;
	return -EOPNOTSUPP;
}

static int dir_usage(int dir, const char *entry, uint64_t *ret)
{
	(void)dir, (void)entry, (void)ret;
	return -EOPNOTSUPP;
}

static int open_entry(int dir, const char *entry)
{
	int fd = openat(dir, entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

static int subvol_limit(int dir, const char *entry, uint64_t bytes)
{
	auto_close int fd = open_entry(dir, entry);

	return fd < 0 ? fd : btrfs_limit(fd, bytes);
}

static int subvol_usage(int dir, const char *entry, uint64_t *ret)
{
	auto_close int fd = open_entry(dir, entry);

	return fd < 0 ? fd : btrfs_usage(fd, ret);
}

static const struct shelf_ops dir_ops = { "dir", false, dir_make, dir_drop, dir_limit, dir_usage };
static const struct shelf_ops btrfs_ops = {
	"btrfs", true, btrfs_subvol_create, btrfs_subvol_delete, subvol_limit, subvol_usage
};

static int open_plain(struct shelf *s, struct err *err)
{
	if (mkdirat(s->home, "store", 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "store");
	s->dir = openat(s->home, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->dir < 0)
		return err_sys(err, errno, "store");
	s->ops = &dir_ops;
	if (!s->rootless && btrfs_is(s->dir) && btrfs_quota_enable(s->dir) == 0)
		s->ops = &btrfs_ops;
	return 0;
}

/* A host that cannot have a volume (no loop device, no mkfs.btrfs) keeps plain directories from the
 * start; one that has a volume never falls back to them, since the files are in it. */
int shelf_open(struct shelf *s, struct err *err)
{
	struct err why;
	int dir, r;

	if (s->dir >= 0)
		return 0;
	if (s->rootless || btrfs_is(s->home) || faccessat(s->home, "store", F_OK, 0) == 0)
		return open_plain(s, err);
	dir = volume_open(s->home, s->scratch, &why);
	if (dir < 0 && faccessat(s->home, "volume.btrfs", F_OK, 0) == 0) {
		*err = why;
		return -1;
	}
	if (dir < 0)
		return open_plain(s, err);
	r = btrfs_quota_enable(dir);
	if (r < 0) {
		close(dir);
		return err_sys(err, -r, "volume quota");
	}
	s->dir = dir;
	s->ops = &btrfs_ops;
	return 0;
}

bool shelf_has_limit(const struct shelf *s)
{
	if (s->dir >= 0)
		return s->ops->has_limit;
	if (s->rootless)
		return false;
	if (btrfs_is(s->home))
		return true;
	return faccessat(s->home, "store", F_OK, 0) < 0 && volume_is_possible(s->home);
}

static int make_upper(int entry)
{
	if (mkdirat(entry, "u", 0755) < 0 || mkdirat(entry, "w", 0700) < 0)
		return -errno;
	return 0;
}

int shelf_make(struct shelf *s, const char *entry, const struct limits *l, int userns, int *ret,
	       struct err *err)
{
	auto_close int fd = -1;
	int r, mnt;

	if (shelf_open(s, err) < 0)
		return -1;
	r = s->ops->make(s->dir, entry);
	if (r < 0)
		return err_sys(err, -r, "store entry %s", entry);
	fd = open_entry(s->dir, entry);
	r = fd < 0 ? fd : make_upper(fd);
	if (r == 0 && s->ops->has_limit)
		r = s->ops->limit(s->dir, entry, l->disk_bytes);
	mnt = r < 0 ? r : mount_clone(fd, "", SYS_ATTR_NODEV, userns);
	if (mnt < 0) {
		(void)s->ops->drop(s->dir, entry);
		return err_sys(err, -mnt, "store entry %s", entry);
	}
	*ret = mnt;
	return 0;
}

/* A tmpfs can be mapped since Linux 6.3. Before, the host's ids are kept in it as they are: nobody
 * reads it but this one sandbox, so nothing of them shows. */
static int map_memory(int mnt, int userns, uid_t owner)
{
	int r = mount_set(mnt, 0, userns);

	if (r != -EINVAL)
		return r;
	if (fchownat(mnt, "u", owner, owner, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchownat(mnt, "w", owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

int shelf_make_memory(const struct limits *l, int userns, uid_t owner, int *ret, struct err *err)
{
	char size[32], inodes[32];
	const struct mount_option options[] = { { "size", size },
						{ "nr_inodes", inodes },
						{ "mode", "0755" } };
	auto_close int mnt = -1;
	int r;

	snprintf(size, sizeof(size), "%" PRIu64, l->disk_bytes);
	snprintf(inodes, sizeof(inodes), "%" PRIu64, l->inodes);
	mnt = mount_new("tmpfs", options, ARRAY_LEN(options), SYS_ATTR_NODEV);
	if (mnt < 0)
		return err_sys(err, -mnt, "mount tmpfs");
	r = make_upper(mnt);
	if (r == 0 && userns >= 0)
		r = map_memory(mnt, userns, owner);
	if (r < 0)
		return err_sys(err, -r, "memory store");
	*ret = steal_fd(&mnt);
	return 0;
}

static bool is_made(const struct shelf *s)
{
	return s->dir >= 0 || faccessat(s->home, "store", F_OK, 0) == 0 ||
	       faccessat(s->home, "volume.btrfs", F_OK, 0) == 0;
}

int shelf_drop(struct shelf *s, const char *entry, struct err *err)
{
	int r;

	if (!is_made(s)) /* nothing was ever kept: no reason to make a volume now */
		return 0;
	if (shelf_open(s, err) < 0)
		return -1;
	r = s->ops->drop(s->dir, entry);
	return r < 0 ? err_sys(err, -r, "drop %s", entry) : 0;
}

int shelf_rename(struct shelf *s, const char *from, const char *to, struct err *err)
{
	if (shelf_open(s, err) < 0)
		return -1;
	if (syscall(SYS_renameat2, s->dir, from, s->dir, to, 1 /* RENAME_NOREPLACE */) < 0)
		return err_sys(err, errno, "%s", to);
	return fsync(s->dir) < 0 ? err_sys(err, errno, "store") : 0;
}

int shelf_limit(struct shelf *s, const char *entry, uint64_t bytes, struct err *err)
{
	int r;

	if (shelf_open(s, err) < 0)
		return -1;
	r = s->ops->limit(s->dir, entry, bytes);
	return r < 0 ? err_sys(err, -r, "disk limit of %s", entry) : 0;
}

uint64_t shelf_usage(struct shelf *s, const char *entry)
{
	uint64_t used;

	if (s->dir < 0 || s->ops->usage(s->dir, entry, &used) < 0)
		return UINT64_MAX;
	return used;
}

bool shelf_is_full(struct shelf *s, const char *entry)
{
	char path[300];
	auto_close int fd = -1;

	if (s->dir < 0)
		return false;
	snprintf(path, sizeof(path), "%s/w", entry);
	fd = openat(s->dir, path, O_TMPFILE | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && fallocate(fd, 0, 0, PROBE_BYTES) == 0)
		return false;
	return errno == EDQUOT || errno == ENOSPC;
}
