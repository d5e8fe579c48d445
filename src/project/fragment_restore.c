/* SPDX-License-Identifier: Apache-2.0 */
/* A fragment's files into a sandbox, as one archive that we write and lodge-init unpacks: ten
 * thousand files are one job. And back out of it: one by one, as the engine never reads an archive
 * that a guest had its hands on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/array.h"
#include "sandbox/files_client.h"
#include "sandbox/files_stream.h"
#include "project/internal.h"
#include "project/fragment_restore.h"
#include "project/mem_gate.h"

enum {
	BLOCK = 512,
	SAMPLES = 16, /* files looked at after unpacking */
	RESTORE_MS = 600000,
	ENTRIES_MAX = 20 * STORE_FILES_MAX, /* directories and links included, that are listed */
};

DEFINE_AUTO(struct store_file_list *, store_file_list_fini);

/* ---- the archive --------------------------------------------------------------------------- */

struct header { /* ustar */
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type;
	char link[100], magic[6], version[2], uname[32], gname[32], major[8], minor[8];
	char prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

static int write_all(int fd, struct iovec *iov, int n, struct err *err)
{
	while (n > 0) {
		ssize_t done = writev(fd, iov, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_sys(err, errno, "archive");
		for (; n > 0 && (size_t)done >= iov->iov_len; n--, iov++)
			done -= (ssize_t)iov->iov_len;
		if (n > 0) {
			iov->iov_base = (char *)iov->iov_base + done;
			iov->iov_len -= (size_t)done;
		}
	}
	return 0;
}

static void fill_header(struct header *h, char type, const char *name, size_t size, int64_t mtime)
{
	unsigned sum = 0;

	memset(h, 0, sizeof(*h));
	memcpy(h->name, name, strnlen(name, sizeof(h->name)));
	snprintf(h->mode, sizeof(h->mode), "%07o", 0644);
	snprintf(h->uid, sizeof(h->uid), "%07o", 0);
	snprintf(h->gid, sizeof(h->gid), "%07o", 0);
	snprintf(h->size, sizeof(h->size), "%011zo", size);
	snprintf(h->mtime, sizeof(h->mtime), "%011llo", (unsigned long long)mtime);
	h->type = type;
	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	memset(h->sum, ' ', sizeof(h->sum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += ((unsigned char *)h)[i];
	snprintf(h->sum, sizeof(h->sum), "%06o", sum);
}

static int put_entry(int fd, char type, const char *name, void *data, size_t size, int64_t mtime,
		     struct err *err)
{
	static char zeros[BLOCK];
	struct header h;
	struct iovec iov[] = {
		{ &h, sizeof(h) },
		{ data, size },
		{ zeros, -size & (BLOCK - 1) },
	};

	fill_header(&h, type, name, size, mtime);
	return write_all(fd, iov, 3, err);
}

/* A name that a header has no room for is in one before it: "LENGTH path=NAME\n", where the length
 * counts its own digits. */
static int put_long_name(int fd, const char *path, int64_t mtime, struct err *err)
{
	char text[FRAGMENT_PATH_MAX + 32];
	size_t rest = strlen(" path=") + strlen(path) + 1, len = rest + 1;

	while (rest + (size_t)snprintf(NULL, 0, "%zu", len) != len)
		len++;
	snprintf(text, sizeof(text), "%zu path=%s\n", len, path);
	return put_entry(fd, 'x', "pax", text, len, mtime, err);
}

static int put_file(int fd, const struct store_file *f, int64_t mtime, struct err *err)
{
	if (strlen(f->path) > sizeof(((struct header *)0)->name) &&
	    put_long_name(fd, f->path, mtime, err) < 0)
		return -1;
	return put_entry(fd, '0', f->path, f->data, f->size, mtime, err);
}

/* How far it has come: the reader's offset in the archive is ours too. */
struct reading {
	const struct restore_progress *watch;
	int fd;
	unsigned steps, told;
	off_t ends[STORE_FILES_MAX / RESTORE_STEP]; /* of each so many files */
};

static int make_archive(const struct store_file_list *files, int64_t now, struct reading *ret,
			struct err *err)
{
	static char end[2 * BLOCK];
	auto_close int fd = memfd_create("lodge-fragment", MFD_CLOEXEC);

	if (fd < 0)
		return err_sys(err, errno, "archive");
	for (size_t i = 0; i < files->count; i++) {
		if (put_file(fd, &files->items[i], now / 1000, err) < 0)
			return -1;
		if ((i + 1) % RESTORE_STEP == 0 && ret->steps < ARRAY_LEN(ret->ends))
			ret->ends[ret->steps++] = lseek(fd, 0, SEEK_CUR);
	}
	if (write_all(fd, &(struct iovec){ end, sizeof(end) }, 1, err) < 0)
		return -1;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "archive");
	ret->fd = steal_fd(&fd);
	return 0;
}

static void look(void *arg)
{
	struct reading *r = arg;
	off_t at = lseek(r->fd, 0, SEEK_CUR);

	while (r->told < r->steps && r->ends[r->told] <= at)
		r->watch->fn(r->watch->arg, ++r->told * RESTORE_STEP);
}

/* ---- in ------------------------------------------------------------------------------------ */

/* Of the working directory; a relative path starts at the user's home, which is the usual one. */
static int inside(const struct side_conn *loan, const char *path, char ret[AGENT_PATH_MAX],
		  struct err *err)
{
	const char *dir = side_conn_template(loan)->workdir;
	int n = snprintf(ret, AGENT_PATH_MAX, "%s%s%s", dir ? dir : "", dir ? "/" : "", path);

	return n < AGENT_PATH_MAX
		       ? 0
		       : err_set(err, ERR_INVALID, "%.160s: a path that is too long", path);
}

static int look_at(const struct side_conn *loan, const struct store_file *f, struct err *err)
{
	const char *user = side_conn_template(loan)->user;
	char path[AGENT_PATH_MAX];
	struct files_stat st;
	bool same;

	if (inside(loan, f->path, path, err) < 0 ||
	    files_stat(side_conn_sandbox(loan), user, path, false, &st, err) < 0)
		return err_ctx(err, "after restoring");
	same = S_ISREG(st.st.mode) && st.st.size == f->size;
	free(st.target);
	return same ? 0 : err_set(err, ERR_INTERNAL, "%.160s: is not what was restored", f->path);
}

/* The job has told that it wrote everything; this is whether it did so here. */
static int verify(const struct side_conn *loan, const struct store_file_list *files,
		  struct err *err)
{
	size_t step = files->count / SAMPLES + 1;

	for (size_t i = 0; i < files->count; i += step)
		if (look_at(loan, &files->items[i], err) < 0)
			return -1;
	return files->count > 0 ? look_at(loan, &files->items[files->count - 1], err) : 0;
}

static int unpack(struct engine *e, const struct caller *who, const char *session,
		  const struct store_file_list *files, struct reading *r, struct err *err)
{
	auto_call(side_conn_close) struct side_conn *loan = NULL;
	struct session_ref ref = { .id = session };
	const struct template *t;
	char dir[AGENT_PATH_MAX];

	if (side_conn_open(e, who, &ref, true, &loan, NULL, err) < 0 ||
	    inside(loan, ".", dir, err) < 0)
		return -1;
	t = side_conn_template(loan);
	if (files_tar_in_progress(side_conn_sandbox(loan), t->user, dir, r->fd, look, r, RESTORE_MS,
				  err) < 0)
		return -1;
	look(r);
	return verify(loan, files, err);
}

int fragment_restore_files(struct engine *e, const struct caller *who, const char *session,
			   const struct store_file_list *files,
			   const struct restore_progress *watch, struct err *err)
{
	struct reading r = { .watch = watch, .fd = -1 };
	int done;

	if (files->count == 0)
		return 0;
	if (make_archive(files, engine_now(e), &r, err) < 0)
		return -1;
	done = unpack(e, who, session, files, &r, err);
	close(r.fd);
	return done;
}

/* ---- out ----------------------------------------------------------------------------------- */

struct collect {
	struct side_conn *loan;
	struct store_file_list list;
	unsigned entries, skipped;
	size_t bytes;
};

/* For files_entry_fn: a number of ours ends the listing. */
enum { ENOUGH = 1, NO_MEMORY };

static int note(void *arg, const char *path, const struct agent_stat *st, const char *target)
{
	struct collect *c = arg;

	(void)target;
	if (++c->entries > ENTRIES_MAX)
		return ENOUGH;
	if (S_ISDIR(st->mode))
		return 0;
	if (!S_ISREG(st->mode) || strlen(path) >= FRAGMENT_PATH_MAX ||
	    !json_is_utf8(path, strlen(path))) {
		c->skipped++;
		return 0;
	}
	if (c->list.count == STORE_FILES_MAX || st->size > FRAGMENT_BYTES_MAX - c->bytes)
		return ENOUGH;
	c->bytes += st->size;
	c->list.items[c->list.count].path = strdup(path);
	return c->list.items[c->list.count++].path ? 0 : NO_MEMORY;
}

static int list_all(struct collect *c, struct err *err)
{
	const struct template *t = side_conn_template(c->loan);
	char dir[AGENT_PATH_MAX];
	int r;

	if (inside(c->loan, ".", dir, err) < 0)
		return -1;
	r = files_list(side_conn_sandbox(c->loan), t->user, dir, FRAGMENT_PATH_MAX, note, c, err);
	return r == NO_MEMORY ? err_sys(err, ENOMEM, "files") : r;
}

/* 0: read; 1: too much; 2: not there any more, or not for reading. */
static int read_one(struct collect *c, struct store_file *f, size_t max, struct err *err)
{
	const struct template *t = side_conn_template(c->loan);
	char path[AGENT_PATH_MAX];

	if (inside(c->loan, f->path, path, err) < 0)
		return -1;
	if (files_read(side_conn_sandbox(c->loan), t->user, path, max, &f->data, &f->size, err) ==
	    0)
		return 0;
	switch (err->code) {
	case ERR_LIMIT:
		return err->sys ? -1 : 1; /* more than max, and not our memory */
	case ERR_NOT_FOUND:
	case ERR_DENIED:
	case ERR_INVALID:
		return 2;
	case ERR_NONE:
	case ERR_CONFLICT:
	case ERR_TIMEOUT:
	case ERR_UNAVAILABLE:
	case ERR_INTERNAL:
		break;
	}
	return -1;
}

static int read_all(struct collect *c, struct err *err)
{
	size_t kept = 0, left = FRAGMENT_BYTES_MAX;

	for (size_t i = 0; i < c->list.count; i++) {
		struct store_file *f = &c->list.items[i];
		int r = read_one(c, f, left, err);

		if (r < 0 || r == 1)
			return r;
		if (r == 2) {
			c->skipped++;
			store_file_fini(f);
			*f = (struct store_file){ 0 };
			continue;
		}
		left -= f->size;
		if (f->size == 0) {
			free(f->data);
			f->data = NULL;
		}
		if (kept != i) {
			c->list.items[kept] = *f;
			*f = (struct store_file){ 0 };
		}
		kept++;
	}
	c->list.count = kept;
	return 0;
}

int fragment_collect_files(struct engine *e, const struct caller *who, const char *session,
			   struct store_file_list *ret, unsigned *ret_skipped, bool *is_heavy,
			   struct err *err)
{
	auto_call(side_conn_close) struct side_conn *loan = NULL;
	struct collect c = { 0 };
	auto_call(store_file_list_fini) struct store_file_list *guard = &c.list;
	struct session_ref ref = { .id = session };
	int r;

	c.list.items = calloc(STORE_FILES_MAX, sizeof(*c.list.items));
	if (!c.list.items)
		return err_sys(err, ENOMEM, "files");
	if (side_conn_open(e, who, &ref, true, &loan, NULL, err) < 0)
		return -1;
	c.loan = loan;
	r = list_all(&c, err);
	if (r == 0) {
		mem_gate_enter(is_heavy, c.bytes);
		r = read_all(&c, err);
	}
	if (r)
		return r;
	guard = NULL;
	*ret = c.list;
	*ret_skipped = c.skipped;
	return 0;
}
