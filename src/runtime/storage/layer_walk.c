/* SPDX-License-Identifier: Apache-2.0 */
/* Each layer has one open descriptor: the deepest directory on the path of the walk that exists in
 * this layer. The walk goes up through "..", and ends with -ESTALE if that is not the directory it
 * came from. It reads names of directories in pieces, and keeps the offset of the next piece. */
#include "runtime/storage/layer_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/vec.h"
#include "runtime/storage/layer_attr.h"
#include "runtime/linux_calls.h"

enum { LIST_BYTES = 8192, NAME_BYTES = 256 };

enum kind { ABSENT, WHITEOUT, DIRECTORY, OTHER };

struct entry64 { /* of getdents64 */
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

struct id {
	dev_t dev;
	ino_t ino;
};

struct level {
	struct level *up;
	uint64_t in; /* bit set of the layers that have this directory */
	uint64_t marked; /* of those, with opaque="x": empty files may be whiteouts */
	bool alone; /* no template shows through here */
	bool opaque, whiteouts;
	unsigned layer; /* being listed */
	bool seek; /* the descriptor is new: seek to `at` first */
	int64_t at;
	char *dirs; /* names of directories to enter, each terminated by NUL */
	size_t dirs_len, dirs_at;
	size_t path_len;
	struct stat st;
	struct id ids[]; /* one per layer */
};

struct walk {
	const struct layer_walk_ops *ops;
	void *arg;
	unsigned n, depth;
	const char *opaque, *whiteout; /* names of attributes */
	struct level *level;
	char *path;
	size_t path_size;
	size_t names_len;
	char names[LIST_BYTES];
	_Alignas(8) char list[LIST_BYTES];
	int fd[LAYER_WALK_LAYERS_MAX];
};

int layer_walk_open(int dir, const char *name, int flags)
{
	struct open_how how = { .flags = (uint64_t)(unsigned)flags | O_NOFOLLOW | O_NOCTTY |
					 O_NONBLOCK | O_CLOEXEC | O_NOATIME,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
	int fd = sys_openat2(dir, name, &how);

	if (fd < 0 && errno == EPERM) { /* only the owner may use O_NOATIME */
		how.flags &= ~(uint64_t)O_NOATIME;
		fd = sys_openat2(dir, name, &how);
	}
	return fd < 0 ? -errno : fd;
}

static bool is_in(uint64_t set, unsigned layer)
{
	return set >> layer & 1;
}

static uint64_t bit(unsigned layer)
{
	return (uint64_t)1 << layer;
}

/* In a marked directory, an empty file with an attribute is a whiteout. */
static bool has_whiteout_mark(const struct walk *w, int dir, const char *name,
			      const struct stat *st)
{
	auto_close int fd = -1;

	if (!S_ISREG(st->st_mode) || st->st_size != 0)
		return false;
	fd = layer_walk_open(dir, name, O_RDONLY);
	return fd >= 0 && fgetxattr(fd, w->whiteout, NULL, 0) >= 0;
}

/* The kind of the entry in one layer, or -errno. */
static int classify(const struct walk *w, const struct level *l, unsigned layer, const char *name,
		    struct stat *ret)
{
	if (fstatat(w->fd[layer], name, ret, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return errno == ENOENT ? ABSENT : -errno;
	if (S_ISDIR(ret->st_mode))
		return DIRECTORY;
	if (S_ISCHR(ret->st_mode) && ret->st_rdev == makedev(0, 0))
		return WHITEOUT;
	if (is_in(l->marked, layer) && has_whiteout_mark(w, w->fd[layer], name, ret))
		return WHITEOUT;
	return OTHER;
}

/* ---- down and up ----------------------------------------------------------------------------- */

/* Sets the part of the path after the directory to `name` and `end`. */
static int set_path(struct walk *w, size_t dir_len, const char *name, const char *end)
{
	size_t need = dir_len + strlen(name) + strlen(end) + 1;

	if (vec_reserve(&w->path, &w->path_size, need) < 0)
		return -ENOMEM;
	snprintf(w->path + dir_len, w->path_size - dir_len, "%s%s", name, end);
	return 0;
}

static struct level *level_new(const struct walk *w)
{
	struct level *l = calloc(1, sizeof(*l) + w->n * sizeof(l->ids[0]));

	if (!l)
		return NULL;
	l->up = w->level;
	l->alone = l->up && l->up->alone;
	return l;
}

static void level_free(struct level *l)
{
	if (!l)
		return;
	free(l->dirs);
	free(l);
}
DEFINE_AUTO(struct level *, level_free);

/* Adds the directory `fd` of this layer to the level. -errno, or the value of its opaque mark. */
static int join_level(const struct walk *w, struct level *l, unsigned layer, int fd)
{
	struct stat st;
	char mark = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (fgetxattr(fd, w->opaque, &mark, 1) < 0 && errno != ENODATA && errno != ERANGE &&
	    errno != EOPNOTSUPP)
		return -errno;
	if (!l->in)
		l->st = st;
	l->in |= bit(layer);
	l->ids[layer] = (struct id){ st.st_dev, st.st_ino };
	if (mark == 'x')
		l->marked |= bit(layer);
	return (unsigned char)mark;
}

/* Opens `name` in every layer that shows through: down to the first that is opaque or has a
 * non-directory of this name. Below that, a template does not show through either. */
static int open_parts(const struct walk *w, struct level *l, const char *name, int *fds)
{
	bool stop = false;
	struct stat st;
	int r;

	for (unsigned i = l->up->layer; i < w->n && !stop; i++) {
		if (!is_in(l->up->in, i))
			continue;
		r = classify(w, l->up, i, name, &st);
		if (r < 0)
			return r;
		if (r == ABSENT)
			continue;
		stop = r != DIRECTORY;
		if (stop)
			continue;
		fds[i] = layer_walk_open(w->fd[i], name, O_RDONLY | O_DIRECTORY);
		r = fds[i] < 0 ? fds[i] : join_level(w, l, i, fds[i]);
		if (r < 0)
			return r;
		stop = r == 'y';
	}
	l->opaque = stop && !l->alone;
	l->alone |= stop;
	return l->in ? 0 : -ESTALE;
}

static struct layer_walk_dir dir_of(const struct walk *w, const struct level *l, const char *name)
{
	return (struct layer_walk_dir){ .fd = w->fd[__builtin_ctzll(l->in)],
					.path = w->path,
					.name = name,
					.st = l->st,
					.opaque = l->opaque,
					.whiteouts = l->whiteouts };
}

static int enter_level(struct walk *w, struct level *l, const char *name)
{
	struct layer_walk_dir d;

	w->level = l;
	w->depth++;
	d = dir_of(w, l, name);
	return w->ops->enter(w->arg, &d);
}

static void replace_fds(struct walk *w, int *fds)
{
	for (unsigned i = 0; i < w->n; i++) {
		if (fds[i] < 0)
			continue;
		close(w->fd[i]);
		w->fd[i] = fds[i];
	}
}

static int descend(struct walk *w)
{
	struct level *up = w->level;
	auto_call(level_free) struct level *l = level_new(w);
	const char *name = up->dirs + up->dirs_at;
	int fds[LAYER_WALK_LAYERS_MAX], r;

	up->dirs_at += strlen(name) + 1;
	if (!l)
		return -ENOMEM;
	if (w->depth >= LAYER_WALK_DEPTH_MAX)
		return -ELOOP;
	memset(fds, -1, sizeof(fds));
	r = set_path(w, up->path_len, name, "/");
	if (r == 0)
		r = open_parts(w, l, name, fds);
	if (r < 0) {
		for (unsigned i = 0; i < w->n; i++)
			close_autop(&fds[i]);
		return r;
	}
	replace_fds(w, fds);
	l->path_len = up->path_len + strlen(name) + 1;
	up->seek = true;
	return enter_level(w, steal_ptr(&l), name);
}

/* Fails with -ESTALE if the directory was moved: its parent is then not the expected one. */
static int open_parent(int fd, const struct id *expected)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	auto_close int up = openat(fd, "..", flags | O_NOATIME);
	struct stat st;

	if (up < 0 && errno == EPERM)
		up = openat(fd, "..", flags);
	if (up < 0 || fstat(up, &st) < 0)
		return -errno;
	if (st.st_dev != expected->dev || st.st_ino != expected->ino)
		return -ESTALE;
	return steal_fd(&up);
}

static int ascend(struct walk *w)
{
	auto_call(level_free) struct level *l = w->level;
	struct layer_walk_dir d;
	int r;

	w->path[l->path_len] = 0;
	d = dir_of(w, l, NULL);
	r = w->ops->leave ? w->ops->leave(w->arg, &d) : 0;
	w->level = l->up;
	w->depth--;
	for (unsigned i = 0; i < w->n && l->up && r == 0; i++) {
		int up;

		if (!is_in(l->in, i))
			continue;
		up = open_parent(w->fd[i], &l->up->ids[i]);
		if (up < 0)
			return up;
		close(w->fd[i]);
		w->fd[i] = up;
	}
	return r;
}

/* ---- one directory --------------------------------------------------------------------------- */

static int is_hidden(const struct walk *w, const struct level *l, const char *name)
{
	struct stat st;

	for (unsigned i = 0; i < l->layer; i++) {
		int r = is_in(l->in, i) ? classify(w, l, i, name, &st) : ABSENT;

		if (r != ABSENT)
			return r < 0 ? r : 1;
	}
	return 0;
}

static int report_entry(struct walk *w, struct level *l, enum kind kind, struct layer_walk_item *i)
{
	int r = set_path(w, l->path_len, i->name, "");

	if (r < 0)
		return r;
	i->path = w->path;
	if (kind == OTHER)
		return w->ops->entry(w->arg, i);
	if (l->alone) /* nothing to hide */
		return 0;
	l->whiteouts = true;
	return w->ops->whiteout(w->arg, i);
}

static int handle_name(struct walk *w, struct level *l, const char *name)
{
	struct layer_walk_item i = { l->layer, w->fd[l->layer], .name = name, .alone = l->alone };
	size_t n = strlen(name) + 1;
	int r;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return 0;
	r = is_hidden(w, l, name);
	if (r != 0)
		return r < 0 ? r : 0;
	r = classify(w, l, l->layer, name, &i.st);
	if (r < 0 || r == ABSENT)
		return r;
	if (r != DIRECTORY)
		return report_entry(w, l, (enum kind)r, &i);
	if (n > NAME_BYTES || w->names_len + n > sizeof(w->names))
		return -ENAMETOOLONG;
	memcpy(w->names + w->names_len, name, n);
	w->names_len += n;
	return 0;
}

static int save_dirs(struct walk *w, struct level *l)
{
	free(l->dirs);
	l->dirs_len = l->dirs_at = 0;
	l->dirs = malloc(w->names_len ? w->names_len : 1);
	if (!l->dirs)
		return -ENOMEM;
	memcpy(l->dirs, w->names, w->names_len);
	l->dirs_len = w->names_len;
	return 0;
}

/* Reads a piece of the directory in one layer, or moves on to the next layer. */
static int read_piece(struct walk *w, struct level *l)
{
	int fd = w->fd[l->layer], r = 0;
	long n = 0;

	if (is_in(l->in, l->layer)) {
		if (l->seek && lseek(fd, l->at, SEEK_SET) < 0)
			return -errno;
		n = syscall(SYS_getdents64, fd, w->list, sizeof(w->list));
		if (n < 0)
			return -errno;
	}
	l->seek = false;
	if (n == 0) {
		l->layer++;
		l->at = 0;
		return 0;
	}
	w->names_len = 0;
	for (long at = 0; at < n && r == 0;) {
		struct entry64 *e = (struct entry64 *)(void *)(w->list + at);

		at += e->reclen;
		l->at = e->off;
		r = handle_name(w, l, e->name);
	}
	return r < 0 ? r : save_dirs(w, l);
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Like the overlay, ignores an opaque mark on the root of a layer. */
static int open_roots(struct walk *w, const int *layers)
{
	auto_call(level_free) struct level *l = level_new(w);
	int r = l ? set_path(w, 0, "", "") : -ENOMEM;

	for (unsigned i = 0; i < w->n && r >= 0; i++) {
		w->fd[i] = layer_walk_open(layers[i], ".", O_RDONLY | O_DIRECTORY);
		r = w->fd[i] < 0 ? w->fd[i] : join_level(w, l, i, w->fd[i]);
	}
	return r < 0 ? r : enter_level(w, steal_ptr(&l), "");
}

static void walk_free(struct walk *w)
{
	while (w->level) {
		struct level *up = w->level->up;

		level_free(w->level);
		w->level = up;
	}
	for (unsigned i = 0; i < w->n; i++)
		close_autop(&w->fd[i]);
	free(w->path);
	free(w);
}

int layer_walk(const int *layers, size_t n, const struct layer_walk_ops *ops, void *arg)
{
	bool user = layer_attr_is_user();
	struct walk *w;
	int r;

	if (n == 0 || n > LAYER_WALK_LAYERS_MAX)
		return n ? -E2BIG : -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->ops = ops;
	w->arg = arg;
	w->n = (unsigned)n;
	w->opaque = LAYER_ATTR_NAME(user, "opaque");
	w->whiteout = LAYER_ATTR_NAME(user, "whiteout");
	memset(w->fd, -1, sizeof(w->fd));
	r = open_roots(w, layers);
	while (r == 0 && w->level) {
		struct level *l = w->level;

		if (l->dirs_at < l->dirs_len)
			r = descend(w);
		else if (l->layer < w->n)
			r = read_piece(w, l);
		else
			r = ascend(w);
	}
	walk_free(w);
	return r;
}
