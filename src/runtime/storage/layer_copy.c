/* SPDX-License-Identifier: Apache-2.0 */
/* A directory gets its owner, attributes and times after its entries: they would inherit a default
 * ACL, and change its modification time. */
#include "runtime/storage/layer_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/test_hook.h"
#include "runtime/storage/layer_attr.h"
#include "runtime/storage/layer_links.h"
#include "runtime/storage/layer_walk.h"
#include "runtime/linux_calls.h"

enum { BUF = 128 << 10 };

struct copy {
	int root; /* the destination */
	int out; /* the directory of the destination that the walk is in */
	bool no_clone, no_range; /* the file system does not support it */
	struct layer_links links;
	struct layer_attrs attrs;
	char buf[BUF];
};

/* ---- content --------------------------------------------------------------------------------- */

static bool is_unsupported(int error)
{
	return error == EXDEV || error == ENOSYS || error == EOPNOTSUPP || error == ENOTTY ||
	       error == EINVAL;
}

static ssize_t copy_some(struct copy *c, int in, int out, off_t at, size_t len)
{
	size_t want = len < sizeof(c->buf) ? len : sizeof(c->buf), done = 0;
	ssize_t n = pread(in, c->buf, want, at);

	while (n > 0 && done < (size_t)n) {
		ssize_t w = pwrite(out, c->buf + done, (size_t)n - done, at + (off_t)done);

		if (w < 0)
			return -errno;
		done += (size_t)w;
	}
	return n < 0 ? -errno : n;
}

static int copy_range(struct copy *c, int in, int out, off_t at, off_t end)
{
	while (at < end) {
		off_t from = at, to = at;
		ssize_t n = -1;

		if (!c->no_range) {
			n = copy_file_range(in, &from, out, &to, (size_t)(end - at), 0);
			if (n < 0 && !is_unsupported(errno))
				return -errno;
			c->no_range = n < 0;
		}
		if (n < 0)
			n = copy_some(c, in, out, at, (size_t)(end - at));
		if (n <= 0) /* the file was truncated: the rest is a hole */
			return (int)n;
		at += n;
	}
	return 0;
}

/* Preserves holes. */
static int copy_data(struct copy *c, int in, int out, off_t size)
{
	off_t at = 0, end;
	int r = 0;

	while (at < size && r == 0) {
		at = lseek(in, at, SEEK_DATA);
		if (at < 0 && errno == ENXIO)
			break;
		if (at < 0 && errno != EINVAL)
			return -errno;
		end = at < 0 ? size : lseek(in, at, SEEK_HOLE);
		if (end < 0)
			return -errno;
		end = end < size ? end : size;
		r = copy_range(c, in, out, at < 0 ? 0 : at, end);
		at = end;
	}
	return r < 0 ? r : ftruncate(out, size) < 0 ? -errno : 0;
}

static int copy_content(struct copy *c, int in, int out, off_t size)
{
	if (size == 0)
		return 0;
	if (!c->no_clone && ioctl(out, FICLONE, in) == 0)
		return 0;
	/* EINVAL: only this file cannot be cloned */
	c->no_clone |= errno != EINVAL && is_unsupported(errno);
	return copy_data(c, in, out, size);
}

/* ---- metadata -------------------------------------------------------------------------------- */

static int set_attr(void *arg, const char *name, const void *value, size_t len)
{
	return layer_attr_set(arg, name, value, len);
}

static int set_times(const struct layer_attr_of *to, const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	int r = to->name ? utimensat(to->dir, to->name, times, AT_SYMLINK_NOFOLLOW)
			 : futimens(to->fd, times);

	return r < 0 ? -errno : 0;
}

static int set_mode(const struct layer_attr_of *to, mode_t mode)
{
	int r = 0;

	if (!to->name)
		r = fchmod(to->fd, mode & 07777);
	else if (!S_ISLNK(mode)) /* no other process can reach the new file */
		r = fchmodat(to->dir, to->name, mode & 07777, 0);
	return r < 0 ? -errno : 0;
}

/* The owner comes first, because changing it clears set-id bits and capabilities. */
static int set_metadata(struct copy *c, const struct layer_attr_of *from,
			const struct layer_attr_of *to, const struct stat *st)
{
	struct layer_attr_of target = *to;
	int r = to->name ? fchownat(to->dir, to->name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW)
			 : fchown(to->fd, st->st_uid, st->st_gid);

	if (r < 0)
		return -errno;
	r = layer_attr_each(&c->attrs, from, set_attr, &target);
	if (r == 0)
		r = set_mode(to, st->st_mode);
	return r < 0 ? r : set_times(to, st);
}

/* ---- entries --------------------------------------------------------------------------------- */

static int copy_file(struct copy *c, const struct layer_walk_item *i)
{
	auto_close int in = layer_walk_open(i->dir, i->name, O_RDONLY);
	auto_close int out = -1;
	struct stat st;
	int r;

	if (in < 0)
		return in;
	if (fstat(in, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESTALE;
	out = openat(c->out, i->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return -errno;
	r = copy_content(c, in, out, st.st_size);
	hook_crash("stack:file");
	return r < 0 ? r
		     : set_metadata(c, &(struct layer_attr_of){ .fd = in },
				    &(struct layer_attr_of){ .fd = out }, &st);
}

static int copy_symlink(struct copy *c, const struct layer_walk_item *i)
{
	char target[PATH_MAX + 1];
	ssize_t n = readlinkat(i->dir, i->name, target, sizeof(target));

	if (n < 0)
		return -errno;
	if (n == (ssize_t)sizeof(target))
		return -ENAMETOOLONG;
	target[n] = 0;
	return symlinkat(target, c->out, i->name) < 0 ? -errno : 0;
}

static int copy_other(struct copy *c, const struct layer_walk_item *i)
{
	struct layer_attr_of from = { .dir = i->dir, .name = i->name },
			     to = { .dir = c->out, .name = i->name };
	int r;

	if (S_ISLNK(i->st.st_mode))
		r = copy_symlink(c, i);
	else
		r = mknodat(c->out, i->name, (i->st.st_mode & S_IFMT) | 0600, i->st.st_rdev) < 0
			    ? -errno
			    : 0;
	return r < 0 ? r : set_metadata(c, &from, &to, &i->st);
}

/* Opens the directory of a path that may be longer than PATH_MAX. */
static int open_dir_of(int root, const char *path, const char **ret_name)
{
	auto_close int dir = fcntl(root, F_DUPFD_CLOEXEC, 3);
	char piece[PATH_MAX];
	const char *slash;

	*ret_name = path;
	if (dir < 0)
		return -errno;
	while ((slash = memrchr(path, '/', strnlen(path, sizeof(piece) - 1)))) {
		size_t n = (size_t)(slash - path);
		int next;

		memcpy(piece, path, n);
		piece[n] = 0;
		next = layer_walk_open(dir, piece, O_RDONLY | O_DIRECTORY);
		if (next < 0)
			return next;
		close(dir);
		dir = next;
		*ret_name = path = slash + 1;
	}
	return steal_fd(&dir);
}

static int copy_link(struct copy *c, const char *first, const char *name)
{
	const char *target;
	auto_close int dir = open_dir_of(c->root, first, &target);

	if (dir < 0)
		return dir;
	return linkat(dir, target, c->out, name, 0) < 0 ? -errno : 0;
}

static int put_entry(void *arg, const struct layer_walk_item *i)
{
	struct copy *c = arg;
	const char *first;
	int r = 0;

	if (i->st.st_nlink > 1)
		r = layer_links_add(&c->links, i->layer, &i->st, i->path, &first);
	if (r < 0)
		return r;
	if (r == 1)
		return copy_link(c, first, i->name);
	return S_ISREG(i->st.st_mode) ? copy_file(c, i) : copy_other(c, i);
}

static int put_whiteout(void *arg, const struct layer_walk_item *i)
{
	struct copy *c = arg;

	return mknodat(c->out, i->name, S_IFCHR, makedev(0, 0)) < 0 ? -errno : 0;
}

/* ---- directories ----------------------------------------------------------------------------- */

/* The copy must not inherit ACLs from the directory in which `dir` was made. */
static int clear_acls(int dir)
{
	static const char *const acls[] = { "system.posix_acl_default", "system.posix_acl_access" };

	for (size_t i = 0; i < ARRAY_LEN(acls); i++)
		if (fremovexattr(dir, acls[i]) < 0 && errno != ENODATA && errno != EOPNOTSUPP)
			return -errno;
	return fchmod(dir, 0700) < 0 ? -errno : 0;
}

static int enter_dir(void *arg, const struct layer_walk_dir *d)
{
	struct copy *c = arg;
	int fd;

	if (!*d->path)
		return clear_acls(c->out);
	if (mkdirat(c->out, d->name, 0700) < 0)
		return -errno;
	fd = layer_walk_open(c->out, d->name, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	close(c->out);
	c->out = fd;
	return 0;
}

/* Over a template without this directory, the overlay lists its whiteouts as files unless it has
 * the mark of a copied-up directory. An empty origin mark is enough. */
static int set_marks(const struct copy *c, const struct layer_walk_dir *d)
{
	struct layer_attr_of to = { .fd = c->out };
	int r = 0;

	if (d->opaque)
		r = layer_attr_set(&to, LAYER_ATTR_NAME(c->attrs.user, "opaque"), "y", 1);
	if (r == 0 && d->whiteouts && *d->path)
		r = layer_attr_set(&to, LAYER_ATTR_NAME(c->attrs.user, "origin"), "", 0);
	return r;
}

static int leave_dir(void *arg, const struct layer_walk_dir *d)
{
	struct copy *c = arg;
	auto_close int up = openat(c->out, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = up < 0 ? -errno : set_marks(c, d);

	hook_crash("stack:dir");
	if (r == 0)
		r = set_metadata(c, &(struct layer_attr_of){ .fd = d->fd },
				 &(struct layer_attr_of){ .fd = c->out }, &d->st);
	if (r < 0 || !*d->path)
		return r;
	close(c->out);
	c->out = steal_fd(&up);
	return 0;
}

int layer_copy(const int *layers, size_t n, int dest)
{
	static const struct layer_walk_ops ops = { enter_dir, leave_dir, put_entry, put_whiteout };
	auto_free struct copy *c = calloc(1, sizeof(*c));
	auto_close int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (!c)
		return -ENOMEM;
	c->attrs.user = layer_attr_is_user();
	layer_links_init(&c->links);
	c->root = layer_walk_open(dest, ".", O_RDONLY | O_DIRECTORY);
	c->out = c->root < 0 ? c->root : layer_walk_open(dest, ".", O_RDONLY | O_DIRECTORY);
	r = c->out < 0 ? c->out : layer_walk(layers, n, &ops, c);
	close_autop(&c->out);
	close_autop(&c->root);
	layer_links_free(&c->links);
	if (cwd >= 0)
		(void)!fchdir(cwd);
	return r;
}
