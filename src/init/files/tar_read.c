/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/tar_read.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "init/files/tar_head.h"
#include "init/files/dir_walk.h"
#include "init/files/parent_dir.h"
#include "init/files/remove_job.h"
#include "init/files/tar_whiteout.h"

enum { DIR_ATTRS_MAX = 64 << 20, TRIES_MAX = 10000 };

/* Mode and time of a directory, set last: files could not be created in a read-only one. */
struct dir_attrs {
	struct dir_attrs *next;
	uint32_t mode;
	struct timespec mtime;
	char path[];
};

struct unpack {
	const struct tar_options *o;
	struct tar_source src;
	int root;
	int parent; /* cached with its path: the next entry is often in the same directory */
	char parent_path[AGENT_PATH_MAX];
	uint64_t bytes, entries;
	size_t dir_attrs_bytes;
	struct dir_attrs *dir_attrs;
	struct tar_paths paths; /* of an image layer, for its whiteouts */
	struct tar_entry e;
	char buf[64 * 1024];
};

static int fail(struct err *err, int error, const char *path)
{
	if (error == ELOOP || error == ENOTDIR)
		return err_set(err, ERR_INVALID, "%.160s: not a directory on the path", path);
	/* Created and removed again: another process works in the same place. */
	if (error == ENOENT)
		error = EBUSY;
	return err_sys(err, error, "%.160s", path);
}

/* Turns "./a//b/./c/" into "a/b/c"; "" is the directory itself. */
static int clean_path(char *path, const char *what, struct err *err)
{
	char *from = path, *to = path;

	if (*path == '/')
		return err_set(err, ERR_INVALID,
			       "%s %.160s: absolute paths are not allowed in an archive", what,
			       path);
	while (*from) {
		size_t n = strcspn(from, "/");

		if (n == 2 && from[0] == '.' && from[1] == '.')
			return err_set(err, ERR_INVALID,
				       "%s %.160s: \"..\" is not allowed in an archive", what,
				       path);
		if (n > NAME_MAX)
			return err_set(err, ERR_INVALID, "%s %.100s: name too long", what, from);
		if (n && !(n == 1 && from[0] == '.')) {
			if (to != path)
				*to++ = '/';
			memmove(to, from, n);
			to += n;
		}
		from += n;
		from += strspn(from, "/");
	}
	*to = 0;
	return 0;
}

/* An image layer can name files below a directory that is a link in a lower layer. Follow the link,
 * but only inside the root. */
static int open_in_root(int root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	long fd = -1;

	/* EAGAIN: a mount or rename raced with "..". */
	for (int i = 0; i < TRIES_MAX; i++) {
		fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	/* a dangling link is not a directory */
	return fd >= 0 ? (int)fd : errno == ENOENT ? -ENOTDIR : -errno;
}

static int open_below(struct unpack *u, int dir, const char *name, const char *whole)
{
	int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT) {
		if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	} else if (u->o->oci && (errno == ELOOP || errno == ENOTDIR)) {
		return open_in_root(u->root, whole);
	}
	return fd < 0 ? -errno : fd;
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Whether something is mounted at or above the directory: it is no part of the files. */
static bool is_mount(const struct unpack *u, int dir)
{
	struct stat root, st;

	return u->o->rootfs && fstat(u->root, &root) == 0 && fstat(dir, &st) == 0 &&
	       st.st_dev != root.st_dev;
}

/* The directory of `path`. Creates missing directories, goes by descriptor and follows no link.
 * Stops where something is mounted. */
static int open_parent(struct unpack *u, const char *path)
{
	auto_close int dir = openat(u->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t len = (size_t)(last_name(path) - path), at = 0;
	char whole[AGENT_PATH_MAX];

	if (dir < 0)
		return -errno;
	memcpy(whole, path, len);
	whole[len] = 0;
	while (at < len) {
		size_t n = strcspn(whole + at, "/");
		char was = whole[at + n];
		int next;

		whole[at + n] = 0;
		next = open_below(u, dir, whole + at, whole);
		if (next < 0)
			return next;
		whole[at + n] = was;
		close(dir);
		dir = next;
		at += n + 1;
		if (is_mount(u, dir))
			break;
	}
	return steal_fd(&dir);
}

/* Valid until the next call. */
static int parent_of(struct unpack *u, const char *path)
{
	size_t n = (size_t)(last_name(path) - path);

	if (u->parent >= 0 && strlen(u->parent_path) == n && !memcmp(u->parent_path, path, n))
		return u->parent;
	close_autop(&u->parent);
	u->parent = open_parent(u, path);
	memcpy(u->parent_path, path, n);
	u->parent_path[n] = 0;
	return u->parent;
}

static void set_xattrs(const struct unpack *u, int fd)
{
	const size_t prefix = strlen(PAX_XATTR);
	struct tar_record r;
	char name[256];
	size_t at = 0;

	while (tar_record_next(u->src.extra, u->e.extra_len, &at, &r)) {
		size_t n = r.key_len - prefix;

		if (r.key_len <= prefix || memcmp(r.key, PAX_XATTR, prefix) != 0 ||
		    n >= sizeof(name) || n < 6 || memcmp(r.key + prefix, "user.", 5) != 0)
			continue;
		memcpy(name, r.key + prefix, n);
		name[n] = 0;
		/* Best effort: the file system may not support them. */
		fsetxattr(fd, name, r.value, r.value_len, 0);
	}
}

static uint32_t mode_of(const struct unpack *u)
{
	return u->e.mode & (u->o->owners ? 07777 : 0777);
}

/* An empty name is the file `dir` itself. */
static int set_owner(const struct unpack *u, int dir, const char *name, struct err *err)
{
	if (!u->o->owners)
		return 0;
	/* The system call does not change the owner to this number. */
	if (u->e.uid == UINT32_MAX || u->e.gid == UINT32_MAX)
		errno = EINVAL;
	else if (fchownat(dir, name, u->e.uid, u->e.gid, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != EINVAL)
		return fail(err, errno, u->e.path);
	return err_set(err, ERR_INVALID,
		       "%.140s: owner %u:%u is out of range; the maximum is 65535", u->e.path,
		       u->e.uid, u->e.gid);
}

static void set_mtime(const struct unpack *u, int dir, const char *name)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, u->e.mtime };

	utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

/* Removes what is in the way of an entry that is not a directory. */
static int remove_existing(const struct unpack *u, int dir, const char *name, struct err *err)
{
	int r;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		r = -errno;
	else if (u->o->oci)
		r = remove_job_tree(dir, name);
	else
		r = unlinkat(dir, name, AT_REMOVEDIR) == 0 ? 0 : -errno;
	return r < 0 ? fail(err, -r, u->e.path) : 0;
}

static int fail_too_large(const struct unpack *u, struct err *err)
{
	err_set(err, ERR_LIMIT, "archive unpacks to more than %llu bytes",
		(unsigned long long)u->o->max_bytes);
	err->sys = ENOSPC;
	return -1;
}

static int copy_content(struct unpack *u, int fd, struct err *err)
{
	ssize_t n;
	int r;

	while ((n = tar_head_read(&u->src, u->buf, sizeof(u->buf), err)) > 0) {
		u->bytes += (uint64_t)n;
		if (u->o->max_bytes && u->bytes > u->o->max_bytes)
			return fail_too_large(u, err);
		r = file_write_all(fd, u->buf, (size_t)n);
		if (r < 0)
			return fail(err, -r, u->e.path);
	}
	return n < 0 ? -1 : 0;
}

static int put_file(struct unpack *u, int dir, const char *name, struct err *err)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, u->e.mtime };
	auto_close int fd = -1;

	if (remove_existing(u, dir, name, err) < 0)
		return -1;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(err, errno, u->e.path);
	if (copy_content(u, fd, err) < 0)
		return -1;
	set_xattrs(u, fd);
	if (set_owner(u, fd, "", err) < 0)
		return -1;
	/* After chown, which clears setuid bits. */
	if (fchmod(fd, mode_of(u)) < 0 || futimens(fd, times) < 0)
		return fail(err, errno, u->e.path);
	return 0;
}

static int defer_dir_attrs(struct unpack *u, struct err *err)
{
	size_t n = strlen(u->e.path) + 1;
	struct dir_attrs *l;

	/* Bounded, because an archive can repeat a directory any number of times. */
	u->dir_attrs_bytes += sizeof(*l) + n;
	if (u->dir_attrs_bytes > DIR_ATTRS_MAX)
		return err_set(err, ERR_LIMIT, "archive has too many directories");
	l = malloc(sizeof(*l) + n);
	if (!l)
		return err_sys(err, ENOMEM, "%.160s", u->e.path);
	*l = (struct dir_attrs){ u->dir_attrs, mode_of(u), u->e.mtime };
	memcpy(l->path, u->e.path, n);
	u->dir_attrs = l;
	return 0;
}

static int put_dir(struct unpack *u, int dir, const char *name, struct err *err)
{
	auto_close int fd = -1;
	struct stat st;

	if ((fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
	     unlinkat(dir, name, 0) < 0) ||
	    (mkdirat(dir, name, 0700) < 0 && errno != EEXIST))
		return fail(err, errno, u->e.path);
	if (set_owner(u, dir, name, err) < 0)
		return -1;
	fd = dir_walk_open(dir, name);
	if (fd >= 0) {
		set_xattrs(u, fd);
		(void)!fchmod(fd, mode_of(u) | 0700);
	}
	return defer_dir_attrs(u, err);
}

static int put_symlink(struct unpack *u, int dir, const char *name, struct err *err)
{
	if (remove_existing(u, dir, name, err) < 0)
		return -1;
	if (!u->e.link[0])
		return err_set(err, ERR_INVALID, "%.160s: link without a target", u->e.path);
	if (symlinkat(u->e.link, dir, name) < 0)
		return fail(err, errno, u->e.path);
	if (set_owner(u, dir, name, err) < 0)
		return -1;
	set_mtime(u, dir, name);
	return 0;
}

static int put_hardlink(struct unpack *u, int dir, const char *name, struct err *err)
{
	auto_close int target_dir = -1;

	if (clean_path(u->e.link, "link to", err) < 0)
		return -1;
	if (!u->e.link[0])
		return err_set(err, ERR_INVALID, "%.160s: link without a target", u->e.path);
	if (!strcmp(u->e.link, u->e.path))
		return 0;
	target_dir = open_parent(u, u->e.link);
	if (target_dir < 0)
		return fail(err, -target_dir, u->e.link);
	if (remove_existing(u, dir, name, err) < 0)
		return -1;
	if (linkat(target_dir, last_name(u->e.link), dir, name, 0) == 0)
		return 0;
	if (errno == ENOENT)
		return err_set(err, ERR_INVALID, "%.100s: hard link to missing file %.100s",
			       u->e.path, u->e.link);
	if (errno == EPERM || errno == EXDEV)
		return err_set(err, ERR_INVALID,
			       "%.90s: hard link to %.90s, which is not a file of the archive",
			       u->e.path, u->e.link);
	return fail(err, errno, u->e.link);
}

static int put_fifo(struct unpack *u, int dir, const char *name, struct err *err)
{
	if (remove_existing(u, dir, name, err) < 0)
		return -1;
	if (mkfifoat(dir, name, 0600) < 0)
		return fail(err, errno, u->e.path);
	if (set_owner(u, dir, name, err) < 0)
		return -1;
	if (fchmodat(dir, name, mode_of(u), 0) < 0)
		return fail(err, errno, u->e.path);
	set_mtime(u, dir, name);
	return 0;
}

/* The archive of a root file system contains /dev and /proc: skip what is mounted there. */
static bool is_mounted_over(const struct unpack *u, int dir, const char *name)
{
	struct stat root, st;

	if (!u->o->rootfs || fstat(u->root, &root) < 0)
		return false;
	if (is_mount(u, dir))
		return true;
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_dev != root.st_dev;
}

static int put_special(struct unpack *u, int dir, const char *name, struct err *err)
{
	if (u->o->rootfs)
		return 0;
	/* Layers of snapshots contain FIFOs that a guest made. */
	if (u->e.type == '6' && u->o->oci)
		return put_fifo(u, dir, name, err);
	return err_set(err, ERR_INVALID,
		       "%.160s: device files and FIFOs are not supported in archives", u->e.path);
}

static int put_member(struct unpack *u, int dir, const char *name, struct err *err)
{
	switch (u->e.type) {
	case '0':
		return put_file(u, dir, name, err);
	case '1':
		return put_hardlink(u, dir, name, err);
	case '2':
		return put_symlink(u, dir, name, err);
	case '5':
		return put_dir(u, dir, name, err);
	case '3':
	case '4':
	case '6':
		return put_special(u, dir, name, err);
	default:
		return err_set(err, ERR_INVALID, "%.160s: unknown entry type %d", u->e.path,
			       (unsigned char)u->e.type);
	}
}

static int put_entry(struct unpack *u, struct err *err)
{
	const char *name;
	int dir, r;

	if (clean_path(u->e.path, "entry", err) < 0)
		return -1;
	if (!u->e.path[0])
		return 0;
	name = last_name(u->e.path);
	dir = parent_of(u, u->e.path);
	if (dir < 0)
		return fail(err, -dir, u->e.path);
	if (is_mounted_over(u, dir, name))
		return 0;
	if (u->o->oci && tar_whiteout_is_one(name)) {
		r = tar_whiteout_apply(&u->paths, dir, u->e.path, name);
		return r < 0 ? fail(err, -r, u->e.path) : 0;
	}
	r = u->o->oci ? tar_paths_add(&u->paths, u->e.path) : 0;
	return r < 0 ? fail(err, -r, u->e.path) : put_member(u, dir, name, err);
}

static int apply_dir_attrs(struct unpack *u, struct err *err)
{
	for (struct dir_attrs *l = u->dir_attrs; l; l = l->next) {
		struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, l->mtime };
		auto_close int dir = open_parent(u, l->path);
		auto_close int fd = dir < 0 ? dir : dir_walk_open(dir, last_name(l->path));

		if (fd < 0)
			continue; /* a later entry replaced it */
		futimens(fd, times);
		if (fchmod(fd, l->mode) < 0)
			return fail(err, errno, l->path);
	}
	return 0;
}

static int unpack_all(struct unpack *u, struct err *err)
{
	int r;

	while ((r = tar_next(&u->src, &u->e, err)) > 0) {
		if (u->o->max_entries && ++u->entries > u->o->max_entries)
			return err_set(err, ERR_LIMIT, "archive has more than %llu entries",
				       (unsigned long long)u->o->max_entries);
		if (put_entry(u, err) < 0)
			return -1;
	}
	return r < 0 ? -1 : apply_dir_attrs(u, err);
}

int tar_extract(int fd, int dir, const struct tar_options *o, struct err *err)
{
	auto_free struct unpack *u = calloc(1, sizeof(*u));
	auto_free char *extra = malloc(PAX_EXTRA_MAX + 1);
	int r;

	if (!u || !extra)
		return err_sys(err, ENOMEM, "archive");
	u->o = o;
	u->src = (struct tar_source){ .fd = fd, .extra = extra };
	u->root = dir;
	u->parent = -1;
	r = unpack_all(u, err);
	close_autop(&u->parent);
	tar_paths_fini(&u->paths);
	while (u->dir_attrs) {
		struct dir_attrs *l = u->dir_attrs;

		u->dir_attrs = l->next;
		free(l);
	}
	return r;
}

/* A small archive can unpack to any size: leave half of the free space to others. */
static uint64_t half_of_free_space(int dir)
{
	struct statfs fs;

	if (fstatfs(dir, &fs) < 0 || !fs.f_blocks)
		return 0;
	return (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize / 2 + 1;
}

int tar_read_run(const struct file_job *j, struct err *err)
{
	struct tar_options o = {
		.oci = (j->m.flags & AGENT_JOB_OCI) != 0,
		.owners = (j->m.flags & AGENT_JOB_OWNERS) != 0,
		.rootfs = (j->m.flags & AGENT_JOB_ROOTFS) != 0,
		.max_bytes = j->m.max_bytes,
		.max_entries = j->m.max_entries,
	};
	auto_close int place = parent_dir_open(AT_FDCWD, j->path, true);
	auto_close int dir =
		place < 0 ? place : openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (place < 0)
		return err_sys(err, -place, "%.160s", j->path);
	if (dir < 0)
		return err_sys(err, errno, "%.160s", j->path);
	if (o.oci) {
		uint64_t half = half_of_free_space(dir);

		if (!o.max_bytes || half < o.max_bytes)
			o.max_bytes = half;
	}
	if (tar_extract(FILE_JOB_FD, dir, &o, err) < 0)
		return -1;
	return syncfs(dir) < 0 ? err_sys(err, errno, "%.160s", j->path) : 0;
}
