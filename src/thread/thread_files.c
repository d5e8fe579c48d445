/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a thread's workspace: listing, reading, and uploading within the limits. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_io.h"
#include "base/vec.h"
#include "thread/thread_files.h"
#include "sandbox/files_stream.h"
#include "exec/side_conn.h"

enum {
	LIST_MAX = 10000, /* files in one list; the newest are kept */
	LIST_BYTES = 16 << 20, /* of their names */
	GONE_EVERY = 256, /* entries between two checks for a disconnected client */
	NAME_BYTES = 255,
	PIECE = 64 << 10,
};

bool thread_name_is_valid(const char *name)
{
	const char *part = name;

	if (!*name || *name == '/' || strchr(name, '\\') || strlen(name) >= AGENT_PATH_MAX / 2)
		return false;
	while (part) {
		const char *end = strchr(part, '/');
		size_t n = end ? (size_t)(end - part) : strlen(part);

		if (!n || n > NAME_BYTES || (n == 1 && *part == '.') ||
		    (n == 2 && memcmp(part, "..", 2) == 0))
			return false;
		part = end ? end + 1 : NULL;
	}
	return true;
}

static const char *workspace_dir(const struct side_conn *conn)
{
	const char *dir = side_conn_template(conn)->workdir;

	return dir ? dir : ".";
}

static int make_path(const struct side_conn *conn, const char *name, char ret[AGENT_PATH_MAX],
		     struct err *err)
{
	int n;

	if (!name || !thread_name_is_valid(name))
		return err_set(err, ERR_INVALID, "Invalid filename");
	n = snprintf(ret, AGENT_PATH_MAX, "%s/%s", workspace_dir(conn), name);
	return n >= 0 && n < AGENT_PATH_MAX ? 0 : err_set(err, ERR_INVALID, "Invalid filename");
}

/* ---- counting -------------------------------------------------------------------------------- */

static bool is_counted(const char *path, const struct agent_stat *st)
{
	return S_ISREG(st->mode) && !files_is_unfinished(path);
}

static int count_entry(void *arg, const char *path, const struct agent_stat *st, const char *target)
{
	struct thread_files_total *total = arg;

	(void)target;
	if (is_counted(path, st)) {
		total->files++;
		total->bytes += st->size;
	}
	return 0;
}

int thread_files_count(struct side_conn *conn, struct thread_files_total *ret, struct err *err)
{
	struct thread_files_total total = { 0 };

	if (files_list(side_conn_sandbox(conn), side_conn_template(conn)->user, workspace_dir(conn),
		       UINT32_MAX, count_entry, &total, err) < 0)
		return -1;
	*ret = total;
	return 0;
}

/* ---- listing --------------------------------------------------------------------------------- */

struct listing {
	struct thread_files to;
	size_t bytes, seen;
	files_cancelled_fn *gone;
	void *arg;
};

static int newest_first(const void *a, const void *b)
{
	const struct thread_file *x = a, *y = b;

	if (x->mtime_ns != y->mtime_ns)
		return x->mtime_ns < y->mtime_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Keeps the newest files within the maximum. */
static void drop_oldest(struct listing *l)
{
	struct thread_files *to = &l->to;

	if (to->count)
		qsort(to->items, to->count, sizeof(*to->items), newest_first);
	while (to->count > LIST_MAX || (l->bytes > LIST_BYTES && to->count)) {
		struct thread_file *last = &to->items[--to->count];

		l->bytes -= strlen(last->name);
		free(last->name);
	}
}

void thread_files_fini(struct thread_files *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i].name);
	free(l->items);
}

static struct thread_file *add_item(struct listing *l)
{
	struct thread_files *to = &l->to;

	if (to->count == 2 * (size_t)LIST_MAX || l->bytes > 2 * (size_t)LIST_BYTES)
		drop_oldest(l);
	return vec_push(&to->items, &to->count, SIZE_MAX);
}

/* For files_entry_fn: a number of ours ends the listing. */
enum { CLIENT_GONE = 1, NO_MEMORY };

static int list_entry(void *arg, const char *path, const struct agent_stat *st, const char *target)
{
	struct listing *l = arg;
	struct thread_file *f;

	if (++l->seen % GONE_EVERY == 0 && l->gone && l->gone(l->arg))
		return CLIENT_GONE;
	if (!is_counted(path, st))
		return 0;
	(void)count_entry(&l->to.total, path, st, target);
	f = add_item(l);
	if (!f)
		return NO_MEMORY;
	*f = (struct thread_file){ strdup(path), st->size, st->mtime_ns, st->mode };
	if (!f->name)
		return NO_MEMORY;
	l->bytes += strlen(path);
	return 0;
}

int thread_files_list(struct side_conn *conn, files_cancelled_fn *gone, void *arg,
		      struct thread_files *ret, struct err *err)
{
	struct listing l = { .gone = gone, .arg = arg };
	int r = files_list(side_conn_sandbox(conn), side_conn_template(conn)->user,
			   workspace_dir(conn), UINT32_MAX, list_entry, &l, err);

	if (r != 0) {
		thread_files_fini(&l.to);
		if (r > 0)
			return r == CLIENT_GONE
				       ? err_set(err, ERR_UNAVAILABLE, "client disconnected")
				       : err_sys(err, ENOMEM, "file list");
		return -1;
	}
	drop_oldest(&l);
	*ret = l.to;
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

int thread_file_open(struct side_conn *conn, const char *name, int *ret_fd, struct stat *ret,
		     struct err *err)
{
	char path[AGENT_PATH_MAX];
	auto_close int fd = -1;

	if (make_path(conn, name, path, err) < 0 ||
	    files_open(side_conn_sandbox(conn), side_conn_template(conn)->user, path, AGENT_READ, 0,
		       &fd, err) < 0)
		return -1;
	if (fstat(fd, ret) < 0)
		return err_sys(err, errno, "%.160s", name);
	/* do not trust lodge-init, which runs beside the guest */
	if (!S_ISREG(ret->st_mode))
		return err_set(err, ERR_INVALID, "Invalid filename");
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int fail_limit(struct thread_write_result *p, enum thread_limit limit, uint64_t max,
		      uint64_t used, struct err *err)
{
	static const char *const messages[] = { [THREAD_LIMIT_FILE_SIZE] = "File too large",
						[THREAD_LIMIT_FILES] =
							"Too many files in workspace",
						[THREAD_LIMIT_DISK] = "Workspace is full" };

	p->limit_hit = (struct thread_limit_hit){ limit, max, used, p->size };
	err_set(err, ERR_LIMIT, "%s", messages[limit]);
	err->sys = limit == THREAD_LIMIT_FILE_SIZE ? EFBIG : EDQUOT;
	return -1;
}

static int fail_disk(struct side_conn *conn, struct thread_write_result *p, struct err *err)
{
	struct thread_files_total now = { 0 };
	struct err ignored;

	(void)thread_files_count(conn, &now, &ignored);
	return fail_limit(p, THREAD_LIMIT_DISK,
			  template_limit_of(side_conn_template(conn), "disk_bytes"), now.bytes,
			  err);
}

/* Reports the full size of the upload if `fd` is a regular file. */
static int fail_size(struct thread_write_result *p, int fd, uint64_t max, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size > p->size)
		p->size = (uint64_t)st.st_size;
	return fail_limit(p, THREAD_LIMIT_FILE_SIZE, max, 0, err);
}

static int copy_in(struct thread_write_result *p, int from, int to, uint64_t max, struct err *err)
{
	auto_free char *buf = malloc(PIECE);
	ssize_t n = 1;
	int r = 0;

	if (!buf)
		return err_sys(err, ENOMEM, "upload");
	while (r == 0 && n != 0) {
		n = read(from, buf, PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "upload");
		p->size += (uint64_t)n;
		if (p->size > max)
			return fail_size(p, from, max, err);
		r = n ? file_write_all(to, buf, (size_t)n) : 0;
	}
	if (r == 0)
		r = fsync(to) < 0 ? -errno : 0;
	return r < 0 ? err_sys(err, -r, "%.160s", p->path) : 0;
}

/* Call with side_conn_lock() held, so that concurrent uploads cannot exceed a limit together. */
static int commit_upload(struct side_conn *conn, const struct thread_config *t,
			 struct thread_write_result *p, struct files_put *upload, struct err *err)
{
	struct sandbox *sb = side_conn_sandbox(conn);
	const struct template *spec = side_conn_template(conn);
	struct files_stat was = { 0 };
	struct thread_files_total now;
	bool is_new = files_stat(sb, spec->user, p->path, true, &was, err) < 0;

	free(was.target);
	if (thread_files_count(conn, &now, err) < 0)
		return -1;
	if (is_new && now.files >= t->files)
		return fail_limit(p, THREAD_LIMIT_FILES, t->files, now.files, err);
	/* the old file may be outside the workspace, behind a link */
	if (!is_new && was.st.size <= now.bytes)
		now.bytes -= was.st.size;
	if (now.bytes + p->size > template_limit_of(spec, "disk_bytes"))
		return fail_disk(conn, p, err);
	return files_put_commit(upload, err);
}

/* The file size limit is the session's own; the configuration may have changed since. */
int thread_file_write(struct side_conn *conn, const struct thread_config *t, const char *name,
		      int fd, struct thread_write_result *ret, struct err *err)
{
	const struct template *spec = side_conn_template(conn);
	auto_call(files_put_free) struct files_put *upload = NULL;
	int r;

	*ret = (struct thread_write_result){ 0 };
	if (make_path(conn, name, ret->path, err) < 0)
		return -1;
	r = files_put_new(side_conn_sandbox(conn), spec->user, ret->path, AGENT_PARENTS, 0, &upload,
			  err);
	if (r == 0)
		r = copy_in(ret, fd, files_put_fd(upload), template_limit_of(spec, "file_bytes"),
			    err);
	if (r == 0) {
		side_conn_lock(conn);
		r = commit_upload(conn, t, ret, upload, err);
		side_conn_unlock(conn);
	}
	if (r < 0 && !ret->limit_hit.limit && err->code == ERR_LIMIT &&
	    (err->sys == EDQUOT || err->sys == ENOSPC))
		return fail_disk(conn, ret, err);
	return r;
}
