/* SPDX-License-Identifier: Apache-2.0 */
/* Output that outlives its sandbox: <home>/logs/<session>/<exec>.out and .err hold what could be
 * read of each stream when the exec ended. An empty stream has no file. The modification time is
 * the end of the exec; pruning goes by it.
 *
 * The files are not synced: a power loss may lose output, but never how an exec ended. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file_io.h"
#include "base/vec.h"
#include "machine/exec_output_file.h"
#include "sandbox/guest_exec_log.h"

enum {
	NAME = STORE_ID + 16,
	REMOVE_TRIES = 16, /* an exec that ends meanwhile may add a file */
	KEPT_MAX = 64 << 20, /* of one session; beyond it the oldest go */
	KEPT_STEP = 8 << 20, /* so much more, and it is counted again */
	FILES_MAX = 20000, /* likewise */
};

static const char *const suffixes[] = { [GUEST_EXEC_OUT] = "out", [GUEST_EXEC_ERR] = "err" };

static int64_t ended_at(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

static int open_dir(struct engine *e, const char *session)
{
	return openat(e->output_dir, session, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

int exec_output_prepare(struct engine *e, const char *session, struct err *err)
{
	if (mkdirat(e->output_dir, session, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "logs/%s", session);
	return 0;
}

static int write_stream(struct exec_record *c, enum guest_exec_stream s, int fd, uint64_t *ret_size,
			struct err *err)
{
	struct timespec at = { .tv_sec = c->rec.ended_at / 1000,
			       .tv_nsec = c->rec.ended_at % 1000 * 1000000 };
	struct stat st;

	if (guest_exec_save(c->exec, s, fd, err) < 0)
		return -1;
	if (futimens(fd, (struct timespec[]){ at, at }) < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "output");
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

static int save_stream(struct exec_record *c, enum guest_exec_stream s, int dir,
		       struct exec_output_file *ret, struct err *err)
{
	char name[NAME], temp[NAME];
	auto_close int fd = -1;
	uint64_t size = 0;
	int r;

	snprintf(name, sizeof(name), "%s.%s", c->rec.id, suffixes[s]);
	snprintf(temp, sizeof(temp), "%s.tmp", name);
	(void)unlinkat(dir, temp, 0); /* of an engine that was killed here */
	fd = openat(dir, temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(err, errno, "logs/%s/%s", c->rec.session, temp);
	r = write_stream(c, s, fd, &size, err);
	if (r == 0 && renameat(dir, temp, dir, name) < 0)
		r = err_sys(err, errno, "logs/%s/%s", c->rec.session, name);
	if (r < 0) {
		(void)unlinkat(dir, temp, 0);
		return -1;
	}
	*ret = (struct exec_output_file){ .fd = steal_fd(&fd), .size = size };
	return 0;
}

static bool is_empty(const struct exec_record *c, enum guest_exec_stream s)
{
	return guest_exec_start_offset(c->exec, s) == guest_exec_end(c->exec, s);
}

/* ---- limit ----------------------------------------------------------------------------------- */

struct saved {
	char name[NAME];
	int64_t at;
	uint64_t bytes;
};

struct count {
	struct saved *items;
	size_t count;
	uint64_t bytes;
};

static int count_file(int dir, const char *name, void *arg)
{
	struct count *n = arg;
	struct saved *k;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || strlen(name) >= NAME)
		return 0;
	k = vec_push(&n->items, &n->count, SIZE_MAX);
	if (!k)
		return -ENOMEM;
	k->at = ended_at(&st);
	k->bytes = (uint64_t)st.st_size;
	snprintf(k->name, NAME, "%s", name);
	n->bytes += (uint64_t)st.st_size;
	return 0;
}

static int older_first(const void *a, const void *b)
{
	const struct saved *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* A guest's output is on the host's disk, which its own limit does not count. */
static void remove_oldest(int dir)
{
	struct count n = { 0 };

	if (file_each_at(dir, ".", count_file, &n) == 0 &&
	    (n.bytes > KEPT_MAX || n.count > FILES_MAX)) {
		qsort(n.items, n.count, sizeof(*n.items), older_first);
		for (size_t i = 0;
		     i < n.count && (n.bytes > KEPT_MAX / 2 || n.count - i > FILES_MAX / 2); i++)
			if (unlinkat(dir, n.items[i].name, 0) == 0)
				n.bytes -= n.items[i].bytes;
	}
	free(n.items);
}

/* Counting costs as much as there are files: only after some more came. With no lock. */
static void limit_saved(struct exec_record *c, int dir, const struct exec_output_file saved[2])
{
	uint64_t file = KEPT_STEP / (FILES_MAX / 8); /* a file costs too, however small it is */
	bool due;

	if (!c->machine)
		return;
	exec_record_lock(c);
	c->machine->uncounted_bytes += saved[0].size + saved[1].size + file;
	due = c->machine->uncounted_bytes > KEPT_STEP;
	if (due)
		c->machine->uncounted_bytes = 0;
	exec_record_unlock(c);
	if (due)
		remove_oldest(dir);
}

/* Once it ended nothing changes in an exec but its connection: reading it needs no lock. */
int exec_output_save(struct exec_record *c, struct err *err)
{
	struct exec_output_file saved[2] = { { .fd = -1 }, { .fd = -1 } };
	auto_close int dir = -1;
	int r = 0;

	if (is_empty(c, GUEST_EXEC_OUT) && is_empty(c, GUEST_EXEC_ERR))
		return 0;
	dir = open_dir(c->engine, c->rec.session);
	if (dir < 0)
		return err_sys(err, errno, "logs/%s", c->rec.session);
	for (int s = GUEST_EXEC_OUT; r == 0 && s <= GUEST_EXEC_ERR; s++)
		if (!is_empty(c, (enum guest_exec_stream)s))
			r = save_stream(c, (enum guest_exec_stream)s, dir, &saved[s], err);
	limit_saved(c, dir, saved);
	EXEC_RECORD_GUARD(c);
	exec_output_close(c); /* of an earlier try */
	memcpy(c->output, saved, sizeof(saved));
	return r;
}

void exec_output_open(struct exec_record *c)
{
	auto_close int dir = open_dir(c->engine, c->rec.session);

	for (int s = GUEST_EXEC_OUT; dir >= 0 && s <= GUEST_EXEC_ERR; s++) {
		struct exec_output_file *o = &c->output[s];
		char name[NAME];
		struct stat st;

		snprintf(name, sizeof(name), "%s.%s", c->rec.id, suffixes[s]);
		o->fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		o->size = o->fd >= 0 && fstat(o->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
	}
}

void exec_output_close(struct exec_record *c)
{
	for (int s = GUEST_EXEC_OUT; s <= GUEST_EXEC_ERR; s++) {
		if (c->output[s].fd >= 0)
			close(c->output[s].fd);
		c->output[s].fd = -1;
	}
}

/* ---- removal --------------------------------------------------------------------------------- */

void exec_output_remove(struct engine *e, const char *session)
{
	if (!*session || *session == '.' || strchr(session, '/'))
		return;
	for (int i = 0; i < REMOVE_TRIES; i++)
		if (file_remove_tree_at(e->output_dir, session) != -ENOTEMPTY)
			return;
}

struct pruning {
	struct engine *engine;
	int64_t before;
	bool empty; /* nothing is left in the directory at hand */
};

static int prune_file(int dir, const char *name, void *arg)
{
	struct pruning *p = arg;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && ended_at(&st) < p->before &&
	    unlinkat(dir, name, 0) == 0)
		return 0;
	p->empty = false;
	return 0;
}

/* The directory of an existing session stays, even empty: its next exec may end at any moment. */
static int prune_session(int dir, const char *name, void *arg)
{
	struct pruning *p = arg;
	struct store_session s;
	struct err err = { 0 };

	p->empty = true;
	if (file_each_at(dir, name, prune_file, p) < 0 || !p->empty)
		return 0;
	if (STORE_CALL(p->engine, store_session_get, name, &s, &err) == 0)
		store_session_fini(&s);
	else if (err.code == ERR_NOT_FOUND)
		(void)unlinkat(dir, name, AT_REMOVEDIR);
	return 0;
}

void exec_output_prune(struct engine *e, int64_t before)
{
	struct pruning p = { .engine = e, .before = before };
	struct err ignored;

	(void)STORE_CALL(e, store_exec_prune, before, &ignored);
	(void)file_each_at(e->output_dir, ".", prune_session, &p);
}
