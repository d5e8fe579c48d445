/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/template/archive_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/clock.h"
#include "sandbox/agent_client.h"
#include "sandbox/guest_exec.h"
#include "sandbox/files_client.h"
#include "sandbox/files_stream.h"
#include "sandbox/guest_exec_sync.h"
#include "sandbox/guest_exec_log.h"

enum { BUF_SIZE = AGENT_DATA_MAX, PIPE_SIZE = 1 << 20, PROGRESS_MS = 100, MAGIC_MAX = 6 };

struct transfer {
	struct archive_unpack *u;
	int src;
	bool src_eof;
	struct guest_exec *filter; /* decompressor, or NULL */
	uint64_t filter_at;
	struct guest_exec *job; /* NULL: nothing is unpacked */
	int pipe; /* to the file job; -1 after the end of the archive */
	size_t off, len;
	int64_t shown_ms;
	char buf[BUF_SIZE], out[BUF_SIZE];
};

static const struct {
	const char *magic;
	size_t len;
	const char *program;
} compressions[] = {
	{ "\x1f\x8b", 2, "gzip" },
	{ "\3757zXZ", 6, "xz" },
	{ "\x28\xb5\x2f\xfd", 4, "zstd" },
	{ "BZh", 3, "bzip2" },
};

/* The program for the magic bytes. NULL: an uncompressed tar. */
static const char *find_decompressor(const char *head, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(compressions); i++)
		if (len >= compressions[i].len &&
		    !memcmp(head, compressions[i].magic, compressions[i].len))
			return compressions[i].program;
	return NULL;
}

static void report_progress(struct transfer *f)
{
	int64_t now = f->u->progress ? clock_mono_ms() : 0;

	if (!f->u->progress || now - f->shown_ms < PROGRESS_MS)
		return;
	f->shown_ms = now;
	f->u->progress(f->u->arg, f->u);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* A timeout for poll() in *ret; -1: without limit. Fails with ERR_TIMEOUT after the deadline. */
static int get_time_left(const struct archive_unpack *u, int *ret, struct err *err)
{
	int64_t left = u->until_ms - clock_mono_ms();

	*ret = !u->until_ms ? -1 : left > INT_MAX ? INT_MAX : (int)left;
	if (u->until_ms && left <= 0)
		return err_set(err, ERR_TIMEOUT, "unpacking the archive timed out");
	return 0;
}

static int count_bytes(struct archive_unpack *u, size_t n, struct err *err)
{
	u->bytes += n;
	if (!u->max_bytes || u->bytes <= u->max_bytes)
		return 0;
	err_set(err, ERR_LIMIT, "archive unpacks to more than %llu bytes",
		(unsigned long long)u->max_bytes);
	err->sys = EMSGSIZE;
	return -1;
}

/* ---- transfer -------------------------------------------------------------------------------- */

static int start_filter(struct transfer *f, const char *program, struct err *err)
{
	const char *argv[] = { program, "-dc", NULL };
	struct guest_exec_spec spec = { .argv = argv, .stdin_open = true, .hold = true };
	struct archive_unpack *u = f->u;

	if (!u->host && u->need_host(u->arg, &u->host, err) < 0)
		return -1;
	return guest_exec_start(u->host, &spec, &f->filter, err);
}

static int start_job(struct transfer *f, const char *path, unsigned flags, struct err *err)
{
	struct files_job_spec spec = { .op = AGENT_JOB_TAR_IN,
				       .flags = flags,
				       .path = path,
				       .max_bytes = f->u->max_bytes,
				       .max_entries = f->u->max_entries };
	auto_close int theirs = -1;
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	theirs = p[0];
	f->pipe = p[1];
	fcntl(f->pipe, F_SETPIPE_SZ, PIPE_SIZE); /* best effort: the host may not allow it */
	if (fcntl(f->pipe, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, errno, "pipe");
	spec.fd = theirs;
	return files_job_begin(f->u->into, &spec, &f->job, err);
}

/* Passes what was read to the decompressor, or on to the file job. */
static int pass_input(struct transfer *f, size_t n, struct err *err)
{
	f->u->done += n;
	if (f->u->hash && f->filter)
		sha256_add(&f->u->hash->stored, f->buf, n);
	report_progress(f);
	if (f->filter)
		return guest_exec_stdin_is_closed(f->filter)
			       ? 0
			       : guest_exec_stdin(f->filter, f->buf, n, f->src_eof, err);
	f->off = 0;
	f->len = n;
	return 0;
}

static int read_source(struct transfer *f, struct err *err)
{
	ssize_t n = read(f->src, f->buf, sizeof(f->buf));

	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0)
		return err_sys(err, errno, "read the archive");
	f->src_eof = n == 0;
	return pass_input(f, (size_t)n, err);
}

/* Reads at least the magic bytes into buf. */
static int read_head(struct transfer *f, size_t *ret, struct err *err)
{
	struct pollfd p = { .fd = f->src, .events = POLLIN };
	size_t len = 0;

	while (len < MAGIC_MAX) {
		int wait;
		ssize_t n;

		if (get_time_left(f->u, &wait, err) < 0)
			return -1;
		if (poll(&p, 1, wait) <= 0)
			continue;
		n = read(f->src, f->buf + len, sizeof(f->buf) - len);
		if (n == 0)
			break;
		if (n < 0 && errno != EINTR)
			return err_sys(err, errno, "read the archive");
		len += n > 0 ? (size_t)n : 0;
	}
	*ret = len;
	return len ? 0 : err_set(err, ERR_INVALID, "archive is empty");
}

/* 1: bytes were written; 0: the pipe is full. */
static int write_pipe(struct transfer *f, const char *data, size_t len, size_t *taken,
		      struct err *err)
{
	ssize_t n = f->pipe < 0 ? (ssize_t)len : write(f->pipe, data, len);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 && errno == EPIPE) { /* the job read the end marker; the rest is padding */
		close_fd(&f->pipe);
		n = (ssize_t)len;
	}
	if (n < 0)
		return err_sys(err, errno, "write to the sandbox");
	*taken = (size_t)n;
	if (f->u->hash)
		sha256_add(&f->u->hash->content, data, (size_t)n);
	return count_bytes(f->u, (size_t)n, err) < 0 ? -1 : 1;
}

static int move_plain(struct transfer *f, struct err *err)
{
	size_t taken = 0;
	int r = 0;

	if (f->off < f->len)
		r = write_pipe(f, f->buf + f->off, f->len - f->off, &taken, err);
	f->off += taken;
	if (f->off == f->len && f->src_eof)
		close_fd(&f->pipe);
	return r;
}

static int move_filtered(struct transfer *f, struct err *err)
{
	uint64_t next = f->filter_at;
	ssize_t n = guest_exec_read(f->filter, GUEST_EXEC_OUT, &next, f->out, sizeof(f->out));
	size_t taken = 0;
	int r;

	if (n < 0)
		return err_sys(err, (int)-n, "read from the decompressor");
	if (n == 0) {
		if (*guest_exec_ended(f->filter))
			close_fd(&f->pipe);
		return 0;
	}
	r = write_pipe(f, f->out, (size_t)n, &taken, err);
	if (r <= 0)
		return r;
	f->filter_at += taken;
	if (!*guest_exec_ended(f->filter) &&
	    guest_exec_consumed(f->filter, f->filter_at, guest_exec_end(f->filter, GUEST_EXEC_ERR),
				err) < 0)
		return -1;
	return 1;
}

static bool can_read_source(const struct transfer *f)
{
	if (f->src_eof)
		return false;
	if (f->filter)
		return !guest_exec_stdin_is_busy(f->filter) &&
		       !guest_exec_stdin_is_closed(f->filter);
	return f->off == f->len;
}

static bool has_output(const struct transfer *f)
{
	return f->filter ? guest_exec_end(f->filter, GUEST_EXEC_OUT) > f->filter_at
			 : f->off < f->len;
}

static struct pollfd agent_pollfd(struct guest_exec *x)
{
	struct agent *a = x ? guest_exec_agent(x) : NULL;

	return (struct pollfd){ a ? agent_fd(a) : -1, (short)(a ? agent_events(a) : 0), 0 };
}

static int run_round(struct transfer *f, struct err *err)
{
	struct pollfd p[4] = {
		agent_pollfd(f->job),
		agent_pollfd(f->filter),
		{ f->pipe >= 0 && has_output(f) ? f->pipe : -1, POLLOUT, 0 },
		{ can_read_source(f) ? f->src : -1, POLLIN, 0 },
	};
	struct err ignored;
	int wait, r;

	if (get_time_left(f->u, &wait, err) < 0)
		return -1;
	if (f->pipe < 0 && has_output(f))
		wait = 0; /* nothing has to take it */
	if (poll(p, ARRAY_LEN(p), wait) < 0 && errno != EINTR)
		return err_sys(err, errno, "poll");
	if (p[0].revents && f->job && guest_exec_agent(f->job))
		agent_dispatch(guest_exec_agent(f->job), &ignored);
	if (p[1].revents && guest_exec_agent(f->filter))
		agent_dispatch(guest_exec_agent(f->filter), &ignored);
	if (p[3].revents && can_read_source(f) && read_source(f, err) < 0)
		return -1;
	do
		r = f->filter ? move_filtered(f, err) : move_plain(f, err);
	while (r > 0 && f->filter);
	return r < 0 ? -1 : 0;
}

static int check_filter(struct transfer *f, struct err *err)
{
	const struct guest_exec_result *res;
	struct guest_exec_output o;

	if (!f->filter || f->pipe >= 0)
		return 0;
	if (!*guest_exec_ended(f->filter)) { /* only padding is left */
		guest_exec_kill(f->filter, err);
		return 0;
	}
	if (guest_exec_state(f->filter) == GUEST_EXEC_FAILED) {
		*err = *guest_exec_error(f->filter);
		return err_ctx(err, "decompress");
	}
	res = guest_exec_result(f->filter);
	if (res->code == 0)
		return 0;
	if (guest_exec_collect(f->filter, &o, err) < 0)
		return -1;
	o.err[strcspn(o.err, "\n")] = '\0';
	err_set(err, ERR_INVALID, "decompress: %.200s",
		o.err[0] ? o.err : "the archive is damaged or incomplete");
	guest_exec_output_fini(&o);
	return -1;
}

static bool is_complete(const struct transfer *f)
{
	if (f->job)
		return *guest_exec_ended(f->job);
	return f->filter ? *guest_exec_ended(f->filter) && !has_output(f)
			 : f->src_eof && !has_output(f);
}

/* A decompressor may end before its input does; the digest is of all bytes. */
static int finish_hash(struct transfer *f, struct err *err)
{
	int wait;

	if (f->u->hash && !f->filter)
		f->u->hash->stored = f->u->hash->content; /* the same bytes */
	while (f->u->hash && f->filter && !f->src_eof) {
		ssize_t n = read(f->src, f->buf, sizeof(f->buf));

		if (n < 0 && errno != EINTR)
			return err_sys(err, errno, "read the archive");
		if (get_time_left(f->u, &wait, err) < 0)
			return -1;
		f->src_eof = n == 0;
		sha256_add(&f->u->hash->stored, f->buf, n > 0 ? (size_t)n : 0);
	}
	return 0;
}

static int pump_transfer(struct transfer *f, struct err *err)
{
	while (!is_complete(f))
		if (run_round(f, err) < 0)
			return -1;
	close_fd(&f->pipe);
	if (check_filter(f, err) < 0 || finish_hash(f, err) < 0)
		return -1;
	if (!f->job || files_job_check(f->job, "unpack", err) == 0)
		return 0;
	if (err->code == ERR_LIMIT && !err->sys)
		err->sys = EMSGSIZE;
	return -1;
}

/* `path` NULL: nothing is unpacked. */
static int run_transfer(struct transfer *f, const char *path, unsigned flags, struct err *err)
{
	const char *program;
	size_t head;

	if (f->u->hash) {
		sha256_init(&f->u->hash->stored);
		sha256_init(&f->u->hash->content);
	}
	if (read_head(f, &head, err) < 0)
		return -1;
	program = find_decompressor(f->buf, head);
	if ((program && start_filter(f, program, err) < 0) ||
	    (path && start_job(f, path, flags, err) < 0) || pass_input(f, head, err) < 0)
		return -1;
	return pump_transfer(f, err);
}

static int transfer_archive(struct archive_unpack *u, int fd, const char *path, unsigned flags,
			    struct err *err)
{
	struct transfer *f = calloc(1, sizeof(*f));
	struct err ignored;
	int r;

	if (!f)
		return err_sys(err, ENOMEM, "unpack");
	f->u = u;
	f->src = fd;
	f->pipe = -1;
	r = run_transfer(f, path, flags, err);
	close_fd(&f->pipe);
	if (f->job && !*guest_exec_ended(f->job))
		(void)guest_exec_kill(f->job, &ignored);
	guest_exec_free(f->filter);
	guest_exec_free(f->job);
	free(f);
	return r;
}

int archive_unpack_tar(struct archive_unpack *u, int fd, const char *path, unsigned job_flags,
		       struct err *err)
{
	return transfer_archive(u, fd, path, job_flags, err);
}

int archive_unpack_verify(struct archive_unpack *u, int fd, struct err *err)
{
	return transfer_archive(u, fd, NULL, 0, err);
}
