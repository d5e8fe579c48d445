/* SPDX-License-Identifier: Apache-2.0 */
/* Files in pieces. The side connection stays open with the handle, so the session counts as busy.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_io.h"
#include "lib/lib_at.h"
#include "sandbox/files_client.h"

/* ---- reading --------------------------------------------------------------------------------- */

struct lodge_reader {
	struct at *at;
	int fd;
};

PUBLIC void lodge_reader_close(struct lodge_reader *r)
{
	if (!r)
		return;
	close_fd(&r->fd);
	at_free(r->at);
	free(r);
}
DEFINE_AUTO(struct lodge_reader *, lodge_reader_close);

static int open_regular(const struct at *a, const char *path, int *ret)
{
	auto_close int fd = -1;
	struct stat st;

	if (files_open(a->sb, a->user, a->path, AGENT_READ, 0, &fd, &last) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(&last, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(&last, ERR_INVALID, "%s: not a regular file", path);
	*ret = steal_fd(&fd);
	return 0;
}

PUBLIC int lodge_reader_open(struct lodge *l, const struct lodge_ref *ref, const char *path,
			     struct lodge_reader **ret)
{
	auto_call(lodge_reader_close) struct lodge_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return err_sys(&last, ENOMEM, "%s", path ? path : "path");
	r->fd = -1;
	r->at = at_new(l, ref, path);
	if (!r->at || open_regular(r->at, path, &r->fd) < 0)
		return -1;
	*ret = steal_ptr(&r);
	return 0;
}

PUBLIC int lodge_reader_read(struct lodge_reader *r, uint64_t offset, void *buf, size_t size,
			     size_t *ret)
{
	ssize_t n;

	if (offset > INT64_MAX)
		return err_set(&last, ERR_INVALID, "offset: must be less than 2^63");
	do
		n = pread(r->fd, buf, size > SSIZE_MAX ? SSIZE_MAX : size, (off_t)offset);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(&last, errno, "%s", r->at->path);
	*ret = (size_t)n;
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct lodge_writer {
	struct at *at;
	struct files_put *put; /* NULL: committed, or a write failed */
	uint64_t bytes, max;
};

PUBLIC void lodge_writer_close(struct lodge_writer *w)
{
	if (!w)
		return;
	files_put_free(w->put);
	at_free(w->at);
	free(w);
}
DEFINE_AUTO(struct lodge_writer *, lodge_writer_close);

PUBLIC int lodge_writer_open(struct lodge *l, const struct lodge_ref *ref, const char *path,
			     mode_t mode, struct lodge_writer **ret)
{
	auto_call(lodge_writer_close) struct lodge_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return err_sys(&last, ENOMEM, "%s", path ? path : "path");
	w->at = at_new(l, ref, path);
	if (!w->at || files_put_new(w->at->sb, w->at->user, w->at->path, AGENT_PARENTS, mode,
				    &w->put, &last) < 0)
		return -1;
	w->max = template_limit_of(side_conn_template(w->at->loan), "file_bytes");
	*ret = steal_ptr(&w);
	return 0;
}

static int check_open(const struct lodge_writer *w)
{
	return w->put ? 0
		      : err_set(&last, ERR_CONFLICT,
				"%s: already committed, or a write failed; close the writer",
				w->at->path);
}

static int write_bytes(struct lodge_writer *w, const void *data, size_t len)
{
	int r;

	if (len > w->max - w->bytes)
		return err_set(&last, ERR_LIMIT, "%s: larger than %llu bytes (limit: file_bytes)",
			       w->at->path, (unsigned long long)w->max);
	r = file_write_all(files_put_fd(w->put), data, len);
	if (r < 0)
		return err_sys(&last, -r, "%s", w->at->path);
	w->bytes += len;
	return 0;
}

/* What a failed write left is discarded: a commit would make a file with a hole in its content. */
PUBLIC int lodge_writer_write(struct lodge_writer *w, const void *data, size_t len)
{
	if (check_open(w) < 0)
		return -1;
	if (write_bytes(w, data, len) == 0)
		return 0;
	files_put_free(w->put);
	w->put = NULL;
	return -1;
}

PUBLIC int lodge_writer_commit(struct lodge_writer *w)
{
	int r;

	if (check_open(w) < 0)
		return -1;
	r = files_put_commit(w->put, &last);
	files_put_free(w->put);
	w->put = NULL;
	return r;
}
