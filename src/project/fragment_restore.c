/* SPDX-License-Identifier: Apache-2.0 */
/* Restoring writes a fragment's files to one archive, which lodge-init unpacks in one job.
 * Collecting reads the files one by one, because the engine never parses an archive that a guest
 * could have written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/pax.h"
#include "sandbox/files_client.h"
#include "sandbox/files_stream.h"
#include "engine/internal.h"
#include "project/fragment_json.h"
#include "project/fragment_restore.h"
#include "project/mem_gate.h"
#include "exec/side_conn.h"
#include "sandbox/template/template.h"

enum {
	SAMPLES = 16, /* files verified after unpacking */
	RESTORE_MS = 600000,
	ENTRIES_MAX = 20 * STORE_FILES_MAX, /* listed, including directories and links */
};

DEFINE_AUTO(struct store_file_list *, store_file_list_fini);

/* ---- the archive ------------------------------------------------------------------------- */

static int put_file(struct pax *p, const struct store_file *f, int64_t mtime)
{
	struct stat st = { .st_mode = 0644, .st_mtim.tv_sec = mtime };
	int r = pax_entry(p, &(struct pax_entry){ f->path, "", '0', f->size, &st });

	if (r == 0)
		r = pax_bytes(p, f->data, f->size);
	return r < 0 ? r : pax_pad(p, f->size);
}

/* lodge-init reads from the same open file, so its offset shows the progress. */
struct reading {
	const struct restore_progress *progress;
	int fd;
	unsigned steps, reported;
	off_t ends[STORE_FILES_MAX / RESTORE_STEP]; /* offset after each RESTORE_STEP files */
};

static int make_archive(const struct store_file_list *files, int64_t now, struct reading *ret,
			struct err *err)
{
	auto_close int fd = memfd_create("lodge-fragment", MFD_CLOEXEC);
	auto_free struct pax *p = malloc(sizeof(*p));
	int r = 0;

	if (fd < 0 || !p)
		return err_sys(err, errno, "archive");
	p->out.fd = fd;
	p->total = p->out.n = p->extra_len = 0;
	for (size_t i = 0; i < files->count && r == 0; i++) {
		r = put_file(p, &files->items[i], now / 1000);
		if ((i + 1) % RESTORE_STEP == 0 && ret->steps < ARRAY_LEN(ret->ends))
			ret->ends[ret->steps++] = (off_t)p->total;
	}
	if (r == 0)
		r = pax_end(p);
	if (r < 0)
		return err_sys(err, -r, "archive");
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "archive");
	ret->fd = steal_fd(&fd);
	return 0;
}

static void report_progress(void *arg)
{
	struct reading *r = arg;
	off_t at = lseek(r->fd, 0, SEEK_CUR);

	while (r->reported < r->steps && r->ends[r->reported] <= at)
		r->progress->fn(r->progress->arg, ++r->reported * RESTORE_STEP);
}

/* ---- restoring --------------------------------------------------------------------------- */

/* Returns a path in the working directory. Without one it is relative: lodge-init starts at the
 * user's home, the default working directory. */
static int make_path(const struct side_conn *conn, const char *path, char ret[AGENT_PATH_MAX],
		     struct err *err)
{
	const char *dir = side_conn_template(conn)->workdir;
	int n = snprintf(ret, AGENT_PATH_MAX, "%s%s%s", dir ? dir : "", dir ? "/" : "", path);

	return n < AGENT_PATH_MAX ? 0 : err_set(err, ERR_INVALID, "%.160s: path is too long", path);
}

static int verify_file(const struct side_conn *conn, const struct store_file *f, struct err *err)
{
	const char *user = side_conn_template(conn)->user;
	char path[AGENT_PATH_MAX];
	struct files_stat st;
	bool same;

	if (make_path(conn, f->path, path, err) < 0 ||
	    files_stat(side_conn_sandbox(conn), user, path, false, &st, err) < 0)
		return err_ctx(err, "verifying restored files");
	same = S_ISREG(st.st.mode) && st.st.size == f->size;
	free(st.target);
	return same ? 0
		    : err_set(err, ERR_INTERNAL, "%.160s: restored file differs from the fragment",
			      f->path);
}

/* lodge-init reported success; check a sample, because the guest may interfere. */
static int verify(const struct side_conn *conn, const struct store_file_list *files,
		  struct err *err)
{
	size_t step = files->count / SAMPLES + 1;

	for (size_t i = 0; i < files->count; i += step)
		if (verify_file(conn, &files->items[i], err) < 0)
			return -1;
	return files->count > 0 ? verify_file(conn, &files->items[files->count - 1], err) : 0;
}

static int unpack(struct engine *e, const struct caller *caller, const char *session,
		  const struct store_file_list *files, struct reading *r, struct err *err)
{
	auto_call(side_conn_close) struct side_conn *conn = NULL;
	struct session_ref ref = { .id = session };
	const struct template *t;
	char dir[AGENT_PATH_MAX];

	if (side_conn_open(e, caller, &ref, true, &conn, NULL, err) < 0 ||
	    make_path(conn, ".", dir, err) < 0)
		return -1;
	t = side_conn_template(conn);
	if (files_tar_in_progress(side_conn_sandbox(conn), t->user, dir, r->fd, report_progress, r,
				  RESTORE_MS, err) < 0)
		return -1;
	report_progress(r);
	return verify(conn, files, err);
}

int fragment_restore_files(struct engine *e, const struct caller *caller, const char *session,
			   const struct store_file_list *files,
			   const struct restore_progress *progress, struct err *err)
{
	struct reading r = { .progress = progress, .fd = -1 };
	int done;

	if (files->count == 0)
		return 0;
	if (make_archive(files, engine_now(e), &r, err) < 0)
		return -1;
	done = unpack(e, caller, session, files, &r, err);
	close(r.fd);
	return done;
}

/* ---- collecting -------------------------------------------------------------------------- */

struct collect {
	struct side_conn *conn;
	struct store_file_list list;
	unsigned entries, skipped;
	size_t bytes;
};

/* For files_entry_fn: a number of ours ends the listing. */
enum { TOO_MUCH = 1, NO_MEMORY, UNREADABLE };

static int add_entry(void *arg, const char *path, const struct agent_stat *st, const char *target)
{
	struct collect *c = arg;

	(void)target;
	if (++c->entries > ENTRIES_MAX)
		return TOO_MUCH;
	if (S_ISDIR(st->mode))
		return 0;
	if (!S_ISREG(st->mode) || strlen(path) >= FRAGMENT_PATH_MAX ||
	    !json_is_utf8(path, strlen(path))) {
		c->skipped++;
		return 0;
	}
	if (c->list.count == STORE_FILES_MAX || st->size > FRAGMENT_BYTES_MAX - c->bytes)
		return TOO_MUCH;
	c->bytes += st->size;
	c->list.items[c->list.count].path = strdup(path);
	return c->list.items[c->list.count++].path ? 0 : NO_MEMORY;
}

static int list_all(struct collect *c, struct err *err)
{
	const struct template *t = side_conn_template(c->conn);
	char dir[AGENT_PATH_MAX];
	int r;

	if (make_path(c->conn, ".", dir, err) < 0)
		return -1;
	r = files_list(side_conn_sandbox(c->conn), t->user, dir, FRAGMENT_PATH_MAX, add_entry, c,
		       err);
	return r == NO_MEMORY ? err_sys(err, ENOMEM, "files") : r;
}

/* 0: read; TOO_MUCH; UNREADABLE: deleted meanwhile, or not readable. */
static int read_file(struct collect *c, struct store_file *f, size_t max, struct err *err)
{
	const struct template *t = side_conn_template(c->conn);
	char path[AGENT_PATH_MAX];

	if (make_path(c->conn, f->path, path, err) < 0)
		return -1;
	if (files_read(side_conn_sandbox(c->conn), t->user, path, max, &f->data, &f->size, err) ==
	    0)
		return 0;
	if (err->code == ERR_LIMIT && !err->sys) /* with sys it is the engine's memory */
		return TOO_MUCH;
	return err->code == ERR_NOT_FOUND || err->code == ERR_DENIED || err->code == ERR_INVALID
		       ? UNREADABLE
		       : -1;
}

static int read_all(struct collect *c, struct err *err)
{
	size_t kept = 0, left = FRAGMENT_BYTES_MAX;

	for (size_t i = 0; i < c->list.count; i++) {
		struct store_file *f = &c->list.items[i];
		int r = read_file(c, f, left, err);

		if (r < 0 || r == TOO_MUCH)
			return r;
		if (r == UNREADABLE) {
			c->skipped++;
			store_file_fini(f);
			continue;
		}
		left -= f->size;
		if (f->size == 0) {
			free(f->data);
			f->data = NULL;
		}
		c->list.items[kept++] = steal_struct(f);
	}
	c->list.count = kept;
	return 0;
}

int fragment_collect_files(struct engine *e, const struct caller *caller, const char *session,
			   struct store_file_list *ret, unsigned *ret_skipped,
			   struct gate_ticket *memory, struct err *err)
{
	auto_call(side_conn_close) struct side_conn *conn = NULL;
	struct collect c = { 0 };
	auto_call(store_file_list_fini) struct store_file_list *guard = &c.list;
	struct session_ref ref = { .id = session };
	int r;

	c.list.items = calloc(STORE_FILES_MAX, sizeof(*c.list.items));
	if (!c.list.items)
		return err_sys(err, ENOMEM, "files");
	if (side_conn_open(e, caller, &ref, true, &conn, NULL, err) < 0)
		return -1;
	c.conn = conn;
	r = list_all(&c, err);
	if (r == 0) {
		mem_gate_enter(e, memory, c.bytes);
		r = read_all(&c, err);
	}
	if (r)
		return r;
	guard = NULL;
	*ret = c.list;
	*ret_skipped = c.skipped;
	return 0;
}
