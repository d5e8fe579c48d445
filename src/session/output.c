/* SPDX-License-Identifier: Apache-2.0 */
/* Output that outlives its sandbox: <home>/logs/<session>/<exec>.out and .err, the raw bytes that
 * could be read of each stream when its command had ended. An empty stream has no file. The files
 * are as old as the end they belong to, which is how they are found when their time is over.
 *
 * They are not synced: a power loss may take what a command printed, never how it ended. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "session/runs.h"

enum {
	NAME = STORE_ID + 16,
	REMOVE_TRIES = 16, /* a command that ends meanwhile may add a file */
};

static const char *const suffixes[] = { [EXEC_OUT] = "out", [EXEC_ERR] = "err" };

static int open_dir(struct engine *e, const char *session)
{
	return openat(e->logs, session, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

int output_prepare(struct engine *e, const char *session, struct err *err)
{
	if (mkdirat(e->logs, session, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "logs/%s", session);
	return 0;
}

static int fill(struct command *c, enum exec_stream s, int fd, uint64_t *ret_size, struct err *err)
{
	struct timespec at = { .tv_sec = c->rec.ended_at / 1000 };
	struct stat st;

	if (exec_save(c->exec, s, fd, err) < 0)
		return -1;
	if (futimens(fd, (struct timespec[]){ at, at }) < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "output");
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

static int save(struct command *c, enum exec_stream s, int dir, struct output *ret, struct err *err)
{
	char name[NAME], temp[NAME];
	auto_close int fd = -1;
	uint64_t size = 0;

	snprintf(name, sizeof(name), "%s.%s", c->rec.id, suffixes[s]);
	snprintf(temp, sizeof(temp), "%s.tmp", name);
	(void)unlinkat(dir, temp, 0); /* of an engine that was killed here */
	fd = openat(dir, temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(err, errno, "logs/%s/%s", c->rec.session, temp);
	if (fill(c, s, fd, &size, err) < 0) {
		(void)unlinkat(dir, temp, 0);
		return -1;
	}
	if (renameat(dir, temp, dir, name) < 0) {
		err_sys(err, errno, "logs/%s/%s", c->rec.session, name);
		(void)unlinkat(dir, temp, 0);
		return -1;
	}
	*ret = (struct output){ .fd = steal_fd(&fd), .size = size };
	return 0;
}

static bool is_empty(const struct command *c, enum exec_stream s)
{
	return exec_start_offset(c->exec, s) == exec_end(c->exec, s);
}

/* Once it ended nothing changes in an exec but its connection: reading it needs no lock. */
int output_save(struct command *c, struct err *err)
{
	struct output kept[2] = { { .fd = -1 }, { .fd = -1 } };
	auto_close int dir = -1;
	int r = 0;

	if (is_empty(c, EXEC_OUT) && is_empty(c, EXEC_ERR))
		return 0;
	dir = open_dir(c->engine, c->rec.session);
	if (dir < 0)
		return err_sys(err, errno, "logs/%s", c->rec.session);
	if (!is_empty(c, EXEC_OUT))
		r = save(c, EXEC_OUT, dir, &kept[EXEC_OUT], err);
	if (r == 0 && !is_empty(c, EXEC_ERR))
		r = save(c, EXEC_ERR, dir, &kept[EXEC_ERR], err);
	command_lock(c);
	output_close(c); /* of an earlier try */
	memcpy(c->kept, kept, sizeof(kept));
	command_unlock(c);
	return r;
}

void output_open(struct command *c)
{
	auto_close int dir = open_dir(c->engine, c->rec.session);

	for (int s = EXEC_OUT; dir >= 0 && s <= EXEC_ERR; s++) {
		struct output *o = &c->kept[s];
		char name[NAME];
		struct stat st;

		snprintf(name, sizeof(name), "%s.%s", c->rec.id, suffixes[s]);
		o->fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		o->size = o->fd >= 0 && fstat(o->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
	}
}

void output_close(struct command *c)
{
	for (int s = EXEC_OUT; s <= EXEC_ERR; s++) {
		if (c->kept[s].fd >= 0)
			close(c->kept[s].fd);
		c->kept[s].fd = -1;
	}
}

/* ---- when it goes --------------------------------------------------------------------------- */

void runs_forget(struct engine *e, const char *session)
{
	if (!*session || *session == '.' || strchr(session, '/'))
		return;
	for (int i = 0; i < REMOVE_TRIES; i++)
		if (file_remove_tree_at(e->logs, session) != -ENOTEMPTY)
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

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (int64_t)st.st_mtim.tv_sec * 1000 < p->before && unlinkat(dir, name, 0) == 0)
		return 0;
	p->empty = false;
	return 0;
}

/* That of a session which is there stays, also empty: its next command may end at any moment. */
static int prune_session(int dir, const char *name, void *arg)
{
	struct pruning *p = arg;
	struct store_session s;
	struct err err = { 0 };
	int r = -1;

	p->empty = true;
	if (file_each_at(dir, name, prune_file, p) < 0 || !p->empty)
		return 0;
	DB (p->engine, st)
		r = st->session->get(st, name, &s, &err);
	if (r == 0)
		store_session_fini(&s);
	else if (err.code == ERR_NOT_FOUND)
		(void)unlinkat(dir, name, AT_REMOVEDIR);
	return 0;
}

void runs_prune(struct engine *e, int64_t before)
{
	struct pruning p = { .engine = e, .before = before };
	struct err ignored;

	DB (e, st)
		(void)st->exec->prune(st, before, &ignored);
	(void)file_each_at(e->logs, ".", prune_session, &p);
}
