/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a session: each call uses a side connection to its sandbox. */
#include "sandbox/files_client.h"
#include "sandbox/files_stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "lib/lib_files.h"
#include "lib/lib_at.h"

/* fn(sandbox, user, path, ...) of one call. */
#define FILES_CALL(l, ref, path, fn, ...)                                                          \
	({                                                                                         \
		auto_call(at_free) struct at *a_ = at_new(l, ref, path);                           \
		a_ ? fn(a_->sb, a_->user, a_->path, __VA_ARGS__) : -1;                             \
	})

/* ---- content --------------------------------------------------------------------------------- */

static void bytes_fini(void *body)
{
	free(((struct lodge_bytes *)body)->data);
}

PUBLIC int lodge_file_read(struct lodge *l, const struct lodge_ref *ref, const char *path,
			   size_t max, struct lodge_bytes **ret)
{
	auto_call(at_free) struct at *a = at_new(l, ref, path);
	struct lodge_bytes *b;
	size_t len;
	void *data;

	if (!a || files_read(a->sb, a->user, a->path, max, &data, &len, &last) < 0)
		return -1;
	b = box_new(sizeof(*b), bytes_fini);
	if (!b) {
		free(data);
		return -1;
	}
	*b = (struct lodge_bytes){ .data = data, .len = len };
	*ret = b;
	return 0;
}

PUBLIC int lodge_file_write(struct lodge *l, const struct lodge_ref *ref, const char *path,
			    const void *data, size_t len, mode_t mode)
{
	return FILES_CALL(l, ref, path, files_write, data, len, AGENT_PARENTS, mode, &last);
}

PUBLIC int lodge_file_append(struct lodge *l, const struct lodge_ref *ref, const char *path,
			     const void *data, size_t len, mode_t mode)
{
	return FILES_CALL(l, ref, path, files_append, data, len, mode, &last);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct lodge_file *lib_put_file(const char *path, const struct agent_stat *st, const char *target)
{
	size_t path_size = strlen(path) + 1, target_size = target ? strlen(target) + 1 : 1;
	struct {
		struct lodge_file pub;
		char texts[];
	} *b = box_new(sizeof(*b) + path_size + target_size, NULL);

	if (!b)
		return NULL;
	memcpy(b->texts, path, path_size);
	if (target)
		memcpy(b->texts + path_size, target, target_size);
	b->pub = (struct lodge_file){ .path = b->texts,
				      .target = b->texts + path_size,
				      .mode = st->mode,
				      .nlink = st->nlink,
				      .uid = st->uid,
				      .gid = st->gid,
				      .size = st->size,
				      .ino = st->ino,
				      .mtime_ns = st->mtime_ns,
				      .ctime_ns = st->ctime_ns };
	return &b->pub;
}

PUBLIC int lodge_file_stat(struct lodge *l, const struct lodge_ref *ref, const char *path,
			   int follow, struct lodge_file **ret)
{
	auto_call(at_free) struct at *a = at_new(l, ref, path);
	struct files_stat st;
	struct lodge_file *f;

	if (!a || files_stat(a->sb, a->user, a->path, follow, &st, &last) < 0)
		return -1;
	f = lib_put_file(path, &st.st, st.target);
	free(st.target);
	if (!f)
		return -1;
	*ret = f;
	return 0;
}

struct listing {
	struct lodge_files *files;
	const char *path;
	size_t max;
};

static void files_fini(void *body)
{
	struct lodge_files *f = body;

	for (size_t i = 0; i < f->count; i++)
		lodge_free(f->items[i]);
	free(f->items);
}

struct lodge_files *lib_put_files(size_t n)
{
	struct lodge_files *f = box_new(sizeof(*f), files_fini);

	if (f && n)
		f->items = calloc(n, sizeof(void *));
	if (!f || !n || f->items)
		return f;
	lodge_free(f);
	err_sys(&last, ENOMEM, "files");
	return NULL;
}

static int add_file(void *arg, const char *path, const struct agent_stat *st, const char *target)
{
	struct listing *to = arg;
	struct lodge_files *f = to->files;
	struct lodge_file **added;

	if (f->count == to->max)
		return err_set(&last, ERR_LIMIT, "%s: more than %zu files", to->path, to->max);
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): the items are pointers */
	added = vec_push(&f->items, &f->count, to->max);
	if (!added)
		return err_sys(&last, ENOMEM, "%s", to->path);
	*added = lib_put_file(path, st, target);
	return *added ? 0 : -1;
}

PUBLIC int lodge_file_list(struct lodge *l, const struct lodge_ref *ref, const char *path,
			   uint32_t depth, size_t max, struct lodge_files **ret)
{
	auto_call(at_free) struct at *a = at_new(l, ref, path);
	struct listing to = { .path = path, .max = max };

	if (!a)
		return -1;
	to.files = lib_put_files(0);
	if (!to.files)
		return -1;
	if (files_list(a->sb, a->user, a->path, depth, add_file, &to, &last) < 0) {
		lodge_free(to.files);
		return -1;
	}
	*ret = to.files;
	return 0;
}

/* ---- changing -------------------------------------------------------------------------------- */

PUBLIC int lodge_file_mkdir(struct lodge *l, const struct lodge_ref *ref, const char *path,
			    int parents, mode_t mode)
{
	return FILES_CALL(l, ref, path, files_mkdir, parents, mode, &last);
}

PUBLIC int lodge_file_rename(struct lodge *l, const struct lodge_ref *ref, const char *from,
			     const char *to, int replace)
{
	auto_call(at_free) struct at *a = at_new(l, ref, from);
	char target[AGENT_PATH_MAX];

	if (!a || at_check_path("to", to) < 0 || at_resolve(a, to, target) < 0)
		return -1;
	return files_rename(a->sb, a->user, a->path, target, replace, &last);
}

PUBLIC int lodge_file_remove(struct lodge *l, const struct lodge_ref *ref, const char *path)
{
	return FILES_CALL(l, ref, path, files_remove, &last);
}

PUBLIC int lodge_file_remove_tree(struct lodge *l, const struct lodge_ref *ref, const char *path)
{
	return FILES_CALL(l, ref, path, files_remove_tree, &last);
}

PUBLIC int lodge_file_symlink(struct lodge *l, const struct lodge_ref *ref, const char *target,
			      const char *path)
{
	auto_call(at_free) struct at *a = at_new(l, ref, path);

	if (!a || at_check_path("target", target) < 0)
		return -1;
	return files_symlink(a->sb, a->user, target, a->path, &last);
}

PUBLIC int lodge_file_chmod(struct lodge *l, const struct lodge_ref *ref, const char *path,
			    mode_t mode)
{
	return FILES_CALL(l, ref, path, files_chmod, mode, &last);
}

PUBLIC int lodge_file_tar_out(struct lodge *l, const struct lodge_ref *ref, const char *path,
			      int fd)
{
	return FILES_CALL(l, ref, path, files_tar_out, fd, &last);
}

PUBLIC int lodge_file_tar_in(struct lodge *l, const struct lodge_ref *ref, const char *path, int fd)
{
	return FILES_CALL(l, ref, path, files_tar_in, fd, 0, &last);
}
