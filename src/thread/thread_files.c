/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a thread's workspace: what is there, getting it out, and what may be put in. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_io.h"
#include "thread/thread.h"
#include "sandbox/files_stream.h"

enum {
	LIST_MAX = 10000, /* files in one list: the newest */
	LIST_BYTES = 16 << 20, /* of their names */
	GONE_EVERY = 256, /* entries between two looks whether anybody is there */
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

static const char *workspace(const struct side_conn *loan)
{
	const char *dir = side_conn_template(loan)->workdir;

	return dir ? dir : ".";
}

static int locate(const struct side_conn *loan, const char *name, char ret[AGENT_PATH_MAX],
		  struct err *err)
{
	int n;

	if (!name || !thread_name_is_valid(name))
		return err_set(err, ERR_INVALID, "Invalid filename");
	n = snprintf(ret, AGENT_PATH_MAX, "%s/%s", workspace(loan), name);
	return n >= 0 && n < AGENT_PATH_MAX ? 0 : err_set(err, ERR_INVALID, "Invalid filename");
}

/* ---- counting -------------------------------------------------------------------------------- */

static bool counts(const char *path, const struct agent_stat *st)
{
	return S_ISREG(st->mode) && !files_is_unfinished(path);
}

static int count_entry(void *arg, const char *path, const struct agent_stat *st, const char *target)
{
	struct thread_files_describe *s = arg;

	(void)target;
	if (counts(path, st)) {
		s->files++;
		s->bytes += st->size;
	}
	return 0;
}

int thread_files_describe(struct side_conn *loan, struct thread_files_describe *ret,
			  struct err *err)
{
	struct thread_files_describe s = { 0 };

	if (files_list(side_conn_sandbox(loan), side_conn_template(loan)->user, workspace(loan),
		       UINT32_MAX, count_entry, &s, err) < 0)
		return -1;
	*ret = s;
	return 0;
}

/* ---- listing --------------------------------------------------------------------------------- */

struct listing {
	struct thread_files to;
	size_t cap, bytes, seen;
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

/* The oldest go until there is room. */
static void cut(struct listing *l)
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
		cut(l);
	if (to->count == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		struct thread_file *more = realloc(to->items, cap * sizeof(*more));

		if (!more)
			return NULL;
		to->items = more;
		l->cap = cap;
	}
	return &to->items[to->count];
}

/* 1: nobody waits any more; 2: no memory. */
static int list_entry(void *arg, const char *path, const struct agent_stat *st, const char *target)
{
	struct listing *l = arg;
	struct thread_file *f;

	if (++l->seen % GONE_EVERY == 0 && l->gone && l->gone(l->arg))
		return 1;
	if (!counts(path, st))
		return 0;
	(void)count_entry(&l->to.all, path, st, target);
	f = add_item(l);
	if (!f)
		return 2;
	*f = (struct thread_file){ strdup(path), st->size, st->mtime_ns, st->mode };
	if (!f->name)
		return 2;
	l->bytes += strlen(path);
	l->to.count++;
	return 0;
}

int thread_files_list(struct side_conn *loan, files_cancelled_fn *gone, void *arg,
		      struct thread_files *ret, struct err *err)
{
	struct listing l = { .gone = gone, .arg = arg };
	int r = files_list(side_conn_sandbox(loan), side_conn_template(loan)->user, workspace(loan),
			   UINT32_MAX, list_entry, &l, err);

	if (r != 0) {
		thread_files_fini(&l.to);
		if (r > 0)
			return r == 1 ? err_set(err, ERR_UNAVAILABLE, "nobody waits any more")
				      : err_sys(err, ENOMEM, "the list");
		return -1;
	}
	cut(&l);
	*ret = l.to;
	return 0;
}

/* ---- getting --------------------------------------------------------------------------------- */

int thread_open(struct side_conn *loan, const char *name, int *ret_fd, struct stat *ret,
		struct err *err)
{
	char path[AGENT_PATH_MAX];
	auto_close int fd = -1;

	if (locate(loan, name, path, err) < 0 ||
	    files_open(side_conn_sandbox(loan), side_conn_template(loan)->user, path, AGENT_READ, 0,
		       &fd, err) < 0)
		return -1;
	if (fstat(fd, ret) < 0)
		return err_sys(err, errno, "%.160s", name);
	/* lodge-init lives next door to the guest: it is asked, not believed */
	if (!S_ISREG(ret->st_mode))
		return err_set(err, ERR_INVALID, "Invalid filename");
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* ---- putting --------------------------------------------------------------------------------- */

static int refuse(struct thread_put *p, enum thread_full why, uint64_t max, uint64_t now,
		  struct err *err)
{
	static const char *const words[] = { [THREAD_FILE_SIZE] = "File too large",
					     [THREAD_FILE_COUNT] = "Too many files in workspace",
					     [THREAD_ROOM] = "Workspace is full" };

	p->refusal = (struct thread_refusal){ why, max, now, p->size };
	err_set(err, ERR_LIMIT, "%s", words[why]);
	err->sys = why == THREAD_FILE_SIZE ? EFBIG : EDQUOT;
	return -1;
}

static int refuse_room(struct side_conn *loan, struct thread_put *p, struct err *err)
{
	struct thread_files_describe now = { 0 };
	struct err ignored;

	(void)thread_files_describe(loan, &now, &ignored);
	return refuse(p, THREAD_ROOM, template_limit_of(side_conn_template(loan), "disk_bytes"),
		      now.bytes, err);
}

/* How large it would have been, where that can be told. */
static int refuse_size(struct thread_put *p, int fd, uint64_t max, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size > p->size)
		p->size = (uint64_t)st.st_size;
	return refuse(p, THREAD_FILE_SIZE, max, 0, err);
}

static int copy_in(struct thread_put *p, int from, int to, uint64_t max, struct err *err)
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
			return refuse_size(p, from, max, err);
		r = n ? file_write_all(to, buf, (size_t)n) : 0;
	}
	if (r == 0)
		r = fsync(to) < 0 ? -errno : 0;
	return r < 0 ? err_sys(err, -r, "%.160s", p->path) : 0;
}

/* With the lock: of two that would be the last one only one is. */
static int put_now(struct side_conn *loan, const struct thread_rules *t, struct thread_put *p,
		   struct files_put *aside, struct err *err)
{
	struct sandbox *sb = side_conn_sandbox(loan);
	const struct template *spec = side_conn_template(loan);
	struct files_stat was = { 0 };
	struct thread_files_describe now;
	bool is_new = files_stat(sb, spec->user, p->path, true, &was, err) < 0;

	free(was.target);
	if (thread_files_describe(loan, &now, err) < 0)
		return -1;
	if (is_new && now.files >= t->files)
		return refuse(p, THREAD_FILE_COUNT, t->files, now.files, err);
	/* what it takes the place of may be elsewhere, behind a link */
	if (!is_new && was.st.size <= now.bytes)
		now.bytes -= was.st.size;
	if (now.bytes + p->size > template_limit_of(spec, "disk_bytes"))
		return refuse_room(loan, p, err);
	return files_put_commit(aside, err);
}

/* The largest file is that of this session, whatever the rules are now. */
int thread_put(struct side_conn *loan, const struct thread_rules *t, const char *name, int fd,
	       struct thread_put *ret, struct err *err)
{
	const struct template *spec = side_conn_template(loan);
	auto_call(files_put_free) struct files_put *aside = NULL;
	int r;

	*ret = (struct thread_put){ 0 };
	if (locate(loan, name, ret->path, err) < 0)
		return -1;
	r = files_put_new(side_conn_sandbox(loan), spec->user, ret->path, AGENT_PARENTS, 0, &aside,
			  err);
	if (r == 0)
		r = copy_in(ret, fd, files_put_fd(aside), template_limit_of(spec, "file_bytes"),
			    err);
	if (r == 0) {
		side_conn_lock(loan);
		r = put_now(loan, t, ret, aside, err);
		side_conn_unlock(loan);
	}
	if (r < 0 && !ret->refusal.why && err->code == ERR_LIMIT &&
	    (err->sys == EDQUOT || err->sys == ENOSPC))
		return refuse_room(loan, ret, err);
	return r;
}
