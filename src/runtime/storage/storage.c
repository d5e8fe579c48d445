/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "runtime/storage/btrfs.h"
#include "runtime/mount.h"
#include "runtime/linux_calls.h"
#include "runtime/storage/loop_volume.h"

/* A full volume still accepts a few blocks, so the test write is larger. */
enum { PROBE_BYTES = 256 << 10, PLENTY_BYTES = 2 << 20, VOLUME_PLENTY_BYTES = 64 << 20 };

static int dir_make(int dir, const char *entry)
{
	return mkdirat(dir, entry, 0700) < 0 ? -errno : 0;
}

struct storage_entry storage_entry(char kind, const char *id)
{
	struct storage_entry e;

	snprintf(e.name, sizeof(e.name), "%c-%s", kind, id);
	return e;
}

static int open_entry(int dir, const char *entry)
{
	int fd = openat(dir, entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

static int subvol_limit(int dir, const char *entry, uint64_t bytes)
{
	auto_close int fd = open_entry(dir, entry);

	return fd < 0 ? fd : btrfs_limit(dir, fd, bytes);
}

static int subvol_usage(int dir, const char *entry, struct btrfs_usage *ret)
{
	auto_close int fd = open_entry(dir, entry);

	return fd < 0 ? fd : btrfs_get_usage(fd, ret);
}

static int subvol_snapshot(int dir, const char *from, const char *to)
{
	auto_close int fd = open_entry(dir, from);

	return fd < 0 ? fd : btrfs_subvol_snapshot(dir, to, fd);
}

static const struct storage_ops dir_ops = { .make = dir_make, .drop = file_remove_tree_at };
static const struct storage_ops btrfs_ops = { btrfs_subvol_create, btrfs_subvol_delete,
					      subvol_limit, subvol_usage, subvol_snapshot };

static int open_plain(struct storage *s, struct err *err)
{
	if (mkdirat(s->home, "store", 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "open storage");
	s->dir = openat(s->home, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->dir < 0)
		return err_sys(err, errno, "open storage");
	s->ops = &dir_ops;
	if (!s->rootless && btrfs_is(s->dir) && btrfs_quota_enable(s->dir) == 0)
		s->ops = &btrfs_ops;
	return 0;
}

/* A host that cannot have a volume (no loop device, no mkfs.btrfs) uses plain directories from the
 * start. A host that has a volume never falls back to them, because the files are in it. */
int storage_open(struct storage *s, struct err *err)
{
	struct err why;
	int dir, r;

	if (s->dir >= 0)
		return 0;
	if (s->rootless || btrfs_is(s->home) || faccessat(s->home, "store", F_OK, 0) == 0)
		return open_plain(s, err);
	dir = loop_volume_open(s->home, s->scratch, &s->volume, &why);
	if (dir < 0 && faccessat(s->home, "volume.btrfs", F_OK, 0) == 0) {
		*err = why;
		return -1;
	}
	if (dir < 0) {
		snprintf(s->no_volume, sizeof(s->no_volume), "no btrfs volume: %s", why.msg);
		return open_plain(s, err);
	}
	r = btrfs_quota_enable(dir);
	s->dir = dir;
	s->ops = &btrfs_ops;
	if (r < 0) {
		storage_close(s);
		return err_sys(err, -r, "volume quota");
	}
	return 0;
}

bool storage_is_failed(const struct storage *s)
{
	struct statvfs fs;

	return s->volume >= 0 && fstatvfs(s->dir, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

void storage_close(struct storage *s)
{
	if (s->dir >= 0)
		close(s->dir);
	if (s->volume >= 0) {
		close(s->volume);
		loop_volume_close(s->scratch);
	}
	s->dir = s->volume = -1;
}

bool storage_has_limit(const struct storage *s)
{
	if (s->dir >= 0)
		return s->ops->limit != NULL;
	if (s->rootless)
		return false;
	if (btrfs_is(s->home))
		return true;
	return faccessat(s->home, "store", F_OK, 0) < 0 && loop_volume_is_possible(s->home);
}

const char *storage_limit_problem(const struct storage *s)
{
	if (s->rootless)
		return "disk quotas need root";
	if (*s->no_volume)
		return s->no_volume;
	if (btrfs_is(s->home))
		return "quotas of this btrfs cannot be enabled";
	if (faccessat(s->home, "store", F_OK, 0) == 0)
		return "the data directory was made without a btrfs volume; use a new one";
	return "a btrfs volume needs loop devices and btrfs-progs";
}

bool storage_has_snapshots(const struct storage *s)
{
	return s->ops->snapshot != NULL;
}

static int make_upper(int entry)
{
	if (mkdirat(entry, "w", 0700) < 0 || mkdirat(entry, "u", 0755) < 0)
		return -errno;
	return 0;
}

static int mount_upper(int fd, int userns)
{
	return mount_clone(fd, "", SYS_ATTR_NODEV, userns);
}

int storage_begin(struct storage *s, const char *entry, const char *template, struct err *err)
{
	int fd, r;

	if (storage_open(s, err) < 0)
		return -1;
	r = s->ops->make(s->dir, entry);
	if (r < 0)
		return err_sys(err, -r, "storage entry %s", entry);
	fd = open_entry(s->dir, entry);
	if (fd >= 0 && (!template || symlinkat(template, fd, "template") == 0))
		return fd;
	err_sys(err, fd < 0 ? -fd : errno, "storage entry %s", entry);
	if (fd >= 0)
		close(fd);
	(void)s->ops->drop(s->dir, entry);
	return -1;
}

int storage_make(struct storage *s, const char *entry, const char *template, const struct limits *l,
		 int userns, int *ret, struct err *err)
{
	auto_close int fd = storage_begin(s, entry, template, err);
	int mnt;

	if (fd < 0)
		return -1;
	mnt = make_upper(fd);
	if (mnt == 0 && s->ops->limit)
		mnt = s->ops->limit(s->dir, entry, l->disk_bytes);
	if (mnt == 0)
		mnt = mount_upper(fd, userns);
	if (mnt < 0) {
		(void)s->ops->drop(s->dir, entry);
		return err_sys(err, -mnt, "storage entry %s", entry);
	}
	*ret = mnt;
	return 0;
}

/* The previous overlay may have left files in its work directory. */
static int empty_work(int entry)
{
	int r = file_remove_tree_at(entry, "w");

	return r < 0 ? r : mkdirat(entry, "w", 0700) < 0 ? -errno : 0;
}

int storage_reuse(struct storage *s, const char *entry, int userns, int *ret, struct err *err)
{
	auto_close int fd = -1;
	int mnt;

	if (storage_open(s, err) < 0)
		return -1;
	fd = open_entry(s->dir, entry);
	mnt = fd < 0 ? fd : empty_work(fd);
	if (mnt == 0)
		mnt = mount_upper(fd, userns);
	if (mnt < 0)
		return err_sys(err, -mnt, "storage entry %s", entry);
	*ret = mnt;
	return 0;
}

/* A tmpfs can be idmapped since Linux 6.3. On older kernels it contains host ids. Only this sandbox
 * reads it, so they are not visible elsewhere. */
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

int storage_make_memory(const struct limits *l, int userns, uid_t owner, int *ret, struct err *err)
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
		return err_sys(err, -r, "memory storage");
	*ret = steal_fd(&mnt);
	return 0;
}

bool storage_is_made(const struct storage *s)
{
	return s->dir >= 0 || faccessat(s->home, "store", F_OK, 0) == 0 ||
	       faccessat(s->home, "volume.btrfs", F_OK, 0) == 0;
}

bool storage_has(const struct storage *s, const char *entry)
{
	return s->dir >= 0 && faccessat(s->dir, entry, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int storage_files(struct storage *s, const char *entry, struct err *err)
{
	char path[KEEPER_ID_SIZE + 8];
	int fd;

	if (storage_open(s, err) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/u", entry);
	fd = open_entry(s->dir, path);
	return fd < 0 ? err_sys(err, -fd, "storage entry %s", entry) : fd;
}

int storage_template(const struct storage *s, const char *entry, char ret[KEEPER_ID_SIZE])
{
	char path[KEEPER_ID_SIZE + 16], name[KEEPER_ID_SIZE] = { 0 };

	snprintf(path, sizeof(path), "%s/template", entry);
	if (readlinkat(s->dir, path, name, sizeof(name)) < 0)
		return -errno;
	if (!keeper_id_is_valid(name))
		return -EBADMSG;
	memcpy(ret, name, sizeof(name));
	return 0;
}

int storage_set_template(struct storage *s, const char *entry, const char *template,
			 struct err *err)
{
	char path[KEEPER_ID_SIZE + 16];

	snprintf(path, sizeof(path), "%s/template", entry);
	if (symlinkat(template, s->dir, path) < 0 && errno != EEXIST)
		return err_sys(err, errno, "storage entry %s", entry);
	return 0;
}

struct each {
	const char *prefix;
	file_each_fn *fn;
	void *arg;
};

static int each_entry(int dir, const char *name, void *arg)
{
	const struct each *e = arg;
	size_t n = strlen(e->prefix);

	return strncmp(name, e->prefix, n) == 0 ? e->fn(dir, name + n, e->arg) : 0;
}

int storage_each(struct storage *s, const char *prefix, file_each_fn *fn, void *arg,
		 struct err *err)
{
	struct each e = { prefix, fn, arg };
	int r;

	if (!storage_is_made(s))
		return 0;
	if (storage_open(s, err) < 0)
		return -1;
	r = file_each_at(s->dir, ".", each_entry, &e);
	return r < 0 ? err_sys(err, -r, "list storage") : 0;
}

int storage_snapshot(struct storage *s, const char *from, const char *to, struct err *err)
{
	int r = s->ops->snapshot(s->dir, from, to);

	return r < 0 ? err_sys(err, -r, "snapshot %s", to) : 0;
}

int storage_seal(struct storage *s, const char *entry, struct err *err)
{
	auto_close int fd = open_entry(s->dir, entry);
	int r = fd < 0 ? fd : 0;

	if (r == 0 && s->ops->limit)
		r = btrfs_limit(s->dir, fd, UINT64_MAX); /* first: a full entry allows no changes */
	if (r == 0)
		r = file_remove_tree_at(fd, "w");
	return r < 0 ? err_sys(err, -r, "seal %s", entry) : 0;
}

/* Renames the tree for storage_sweep(), so that it disappears at once. */
static int defer_removal(struct storage *s, const char *entry)
{
	char to[24];
	uint64_t r = 0;

	(void)getrandom(&r, sizeof(r), 0);
	snprintf(to, sizeof(to), "x-%016" PRIx64, r);
	if (renameat(s->dir, entry, s->dir, to) < 0)
		return errno == ENOENT ? 0 : -errno;
	s->has_dropped = true;
	return 0;
}

int storage_drop(struct storage *s, const char *entry, struct err *err)
{
	int r;

	if (!storage_is_made(s)) /* nothing was ever stored: do not make a volume now */
		return 0;
	if (storage_open(s, err) < 0)
		return -1;
	r = s->defer_removal && s->ops == &dir_ops ? defer_removal(s, entry)
						   : s->ops->drop(s->dir, entry);
	return r < 0 ? err_sys(err, -r, "remove %s", entry) : 0;
}

static int sweep_entry(int dir, const char *name, void *arg)
{
	(void)arg;
	/* `.deep.x-R`: moved there by a removal that was killed */
	if (strncmp(name, "x-", 2) == 0)
		(void)file_remove_tree_at(dir, name);
	else if (strncmp(name, ".deep.x-", 8) == 0)
		(void)file_remove_tree_at(dir, name + strlen(".deep."));
	return 0;
}

void storage_sweep(const struct storage *s)
{
	(void)file_each_at(s->dir, ".", sweep_entry, NULL);
}

int storage_move(struct storage *s, const char *from, const char *to, struct err *err)
{
	if (storage_open(s, err) < 0)
		return -1;
	if (syscall(SYS_renameat2, s->dir, from, s->dir, to, 1 /* RENAME_NOREPLACE */) < 0)
		return err_sys(err, errno, "%s", to);
	return 0;
}

int storage_rename(struct storage *s, const char *from, const char *to, struct err *err)
{
	if (storage_move(s, from, to, err) < 0)
		return -1;
	return fsync(s->dir) < 0 ? err_sys(err, errno, "sync storage") : 0;
}

int storage_limit(struct storage *s, const char *entry, uint64_t bytes, struct err *err)
{
	int r = s->ops && s->ops->limit ? s->ops->limit(s->dir, entry, bytes) : 0;

	return r < 0 ? err_sys(err, -r, "set the disk limit of %s", entry) : 0;
}

uint64_t storage_usage(struct storage *s, const char *entry)
{
	struct btrfs_usage used;

	if (s->dir < 0 || !s->ops->usage || s->ops->usage(s->dir, entry, &used) < 0)
		return UINT64_MAX;
	return used.bytes;
}

/* A test write takes space of the guest until the next commit, so it is made only where it can
 * fail. */
static bool has_plenty(struct storage *s, const char *entry)
{
	struct btrfs_usage used;
	struct statvfs fs;

	return s->ops->usage && s->ops->usage(s->dir, entry, &used) == 0 &&
	       used.left >= PLENTY_BYTES && fstatvfs(s->dir, &fs) == 0 &&
	       fs.f_bavail >= VOLUME_PLENTY_BYTES / fs.f_frsize;
}

bool storage_is_full(struct storage *s, const char *entry)
{
	char path[300];
	auto_close int fd = -1;

	if (s->dir < 0 || has_plenty(s, entry))
		return false;
	snprintf(path, sizeof(path), "%s/w", entry);
	fd = openat(s->dir, path, O_TMPFILE | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && fallocate(fd, 0, 0, PROBE_BYTES) == 0)
		return false;
	return errno == EDQUOT || errno == ENOSPC;
}
