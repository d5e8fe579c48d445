/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/tree_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "cli/core/human.h"

enum { DEPTH_MAX = 200 };

/* Callbacks return 1 on failure: file_each_at() takes a negative value for an errno. */
struct moving {
	int to; /* the target directory; -1: none */
	unsigned depth;
	struct err *err;
};

static int fail(struct moving *m, int error, const char *name)
{
	err_sys(m->err, error, "%.160s", name);
	return 1;
}

static int each(struct moving *m, int dir, const char *name, file_each_fn *fn)
{
	int r = file_each_at(dir, name, fn, m);

	return r < 0 ? fail(m, -r, name) : r;
}

/* ---- sanitizing ------------------------------------------------------------------------------ */

static int sanitize_one(int dir, const char *name, void *arg);

/* Also enters directories that their owner may not enter. */
static int sanitize_dir(struct moving *m, int dir, const char *name, mode_t mode)
{
	struct moving inner = { .to = -1, .depth = m->depth + 1, .err = m->err };
	bool shut = (mode & 0500) != 0500;
	int r;

	if (inner.depth > DEPTH_MAX) {
		err_set(m->err, ERR_LIMIT, "directories are nested more than %d deep", DEPTH_MAX);
		return 1;
	}
	if (shut && fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	r = each(&inner, dir, name, sanitize_one);
	if (r == 0 && (shut || mode & 06000) &&
	    fchmodat(dir, name, mode & 01777, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	return r;
}

static int sanitize_one(int dir, const char *name, void *arg)
{
	struct moving *m = arg;
	char clean[256];
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	if (S_ISDIR(st.st_mode))
		return sanitize_dir(m, dir, name, st.st_mode);
	if (S_ISLNK(st.st_mode))
		return 0;
	if (!S_ISREG(st.st_mode)) {
		fprintf(stderr, "lodge: %s: skipped, because it is not a file, directory or link\n",
			human_clean(name, clean, sizeof(clean)));
		return unlinkat(dir, name, 0) < 0 ? fail(m, errno, name) : 0;
	}
	if (st.st_mode & 06000 && fchmodat(dir, name, st.st_mode & 01777, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	return 0;
}

/* ---- moving ---------------------------------------------------------------------------------- */

/* A directory must be writable to get another parent. */
static int move_whole(struct moving *m, int dir, const char *name, const struct stat *st)
{
	int error;

	if (renameat(dir, name, m->to, name) == 0)
		return 0;
	error = errno;
	if (!S_ISDIR(st->st_mode) || error != EACCES || st->st_mode & 0200)
		return fail(m, error, name);
	if (fchmodat(dir, name, (st->st_mode & 01777) | 0700, AT_SYMLINK_NOFOLLOW) < 0 ||
	    renameat(dir, name, m->to, name) < 0 ||
	    fchmodat(m->to, name, st->st_mode & 01777, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	return 0;
}

static int move_one(int dir, const char *name, void *arg)
{
	struct moving *m = arg, inner = { .to = -1, .depth = m->depth + 1, .err = m->err };
	auto_close int to = -1;
	struct stat st, old;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	if (fstatat(m->to, name, &old, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? move_whole(m, dir, name, &st) : fail(m, errno, name);
	if (S_ISDIR(st.st_mode) != S_ISDIR(old.st_mode)) {
		err_set(m->err, ERR_CONFLICT, "%.160s: %s exists here; remove it first", name,
			S_ISDIR(old.st_mode)   ? "a directory"
			: S_ISLNK(old.st_mode) ? "a symbolic link"
					       : "a file");
		return 1;
	}
	if (!S_ISDIR(st.st_mode))
		return move_whole(m, dir, name, &st);
	to = openat(m->to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0 || fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	inner.to = to;
	return each(&inner, dir, name, move_one);
}

int tree_copy(int from, int to, struct err *err)
{
	struct moving m = { .to = -1, .err = err };

	if (each(&m, from, ".", sanitize_one) != 0)
		return -1;
	m.to = to;
	return each(&m, from, ".", move_one) != 0 ? -1 : 0;
}

/* ---- removing -------------------------------------------------------------------------------- */

static int make_writable(int dir, const char *name, void *arg)
{
	unsigned *depth = arg;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	(void)fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW);
	if (++*depth < DEPTH_MAX)
		(void)file_each_at(dir, name, make_writable, depth);
	--*depth;
	return 0;
}

void tree_copy_drop(int dir, const char *name)
{
	unsigned depth = 0;

	(void)make_writable(dir, name, &depth);
	(void)file_remove_tree_at(dir, name);
}
