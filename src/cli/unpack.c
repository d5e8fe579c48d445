/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "sandbox/agent.h"
#include "sandbox/exec.h"
#include "sandbox/files.h"

enum { BUF = AGENT_DATA_MAX, PIPE_WANTED = 1 << 20, PROGRESS_MS = 100, MAGIC = 6 };

struct flow {
	struct unpack *u;
	int src;
	bool src_eof;
	struct exec *filter; /* the decompressor, or NULL */
	uint64_t filter_at;
	struct exec *job;
	int pipe; /* to the job; -1 when there is nothing more for it */
	size_t off, len;
	int64_t shown_ms;
	char buf[BUF];
};

static const struct {
	const char *magic;
	size_t len;
	enum unpack_packing packing;
	const char *program;
} packings[] = {
	{ "\x1f\x8b", 2, UNPACK_GZIP, "gzip" },
	{ "\xfd"
	  "7zXZ",
	  6, UNPACK_XZ, "xz" },
	{ "\x28\xb5\x2f\xfd", 4, UNPACK_ZSTD, "zstd" },
	{ "BZh", 3, UNPACK_BZIP2, "bzip2" },
};

enum unpack_packing unpack_detect(int fd)
{
	char head[MAGIC] = { 0 };
	ssize_t n = pread(fd, head, sizeof(head), 0);

	for (size_t i = 0; n > 0 && i < ARRAY_LEN(packings); i++)
		if (!memcmp(head, packings[i].magic, packings[i].len))
			return packings[i].packing;
	return UNPACK_PLAIN;
}

/* ---- progress -------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void show(struct flow *f)
{
	struct unpack *u = f->u;
	int64_t now = u->progress ? now_ms() : 0;

	if (!u->progress || now - f->shown_ms < PROGRESS_MS)
		return;
	f->shown_ms = now;
	if (u->total)
		fprintf(stderr, "\runpacking %3d %%  %llu MB",
			(int)(100 * u->done / (u->total > u->done ? u->total : u->done)),
			(unsigned long long)(u->done >> 20));
	else
		fprintf(stderr, "\runpacking %llu MB", (unsigned long long)(u->done >> 20));
}

void unpack_done(struct unpack *u)
{
	if (u->progress)
		fprintf(stderr, "\r%40s\r", "");
}

/* ---- the flow -------------------------------------------------------------------------------- */

static int start_filter(struct flow *f, enum unpack_packing packing, struct err *err)
{
	const char *argv[] = { NULL, "-dc", NULL };
	struct exec_spec spec = { .argv = argv, .stdin_open = true, .hold = true };

	for (size_t i = 0; i < ARRAY_LEN(packings); i++)
		if (packings[i].packing == packing)
			argv[0] = packings[i].program;
	return exec_start(f->u->host, &spec, &f->filter, err);
}

static int start_job(struct flow *f, unsigned flags, struct err *err)
{
	struct files_job_spec spec = { .op = AGENT_JOB_TAR_IN, .flags = flags, .path = "/" };
	auto_close int theirs = -1;
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	theirs = p[0];
	f->pipe = p[1];
	fcntl(f->pipe, F_SETPIPE_SZ, PIPE_WANTED); /* as large as the host lets us have it */
	if (fcntl(f->pipe, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, errno, "pipe");
	spec.fd = theirs;
	return files_job_begin(f->u->into, &spec, &f->job, err);
}

static void close_pipe(struct flow *f)
{
	if (f->pipe >= 0)
		close(f->pipe);
	f->pipe = -1;
}

static int read_source(struct flow *f, struct err *err)
{
	ssize_t n = read(f->src, f->buf, sizeof(f->buf));

	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0)
		return err_sys(err, errno, "read the archive");
	f->src_eof = n == 0;
	f->u->done += (uint64_t)n;
	show(f);
	if (f->filter)
		return exec_stdin_is_closed(f->filter)
			       ? 0
			       : exec_stdin(f->filter, f->buf, (size_t)n, f->src_eof, err);
	f->off = 0;
	f->len = (size_t)n;
	return 0;
}

/* 1: something moved; 0: the pipe is full, or there is nothing to move. */
static int write_pipe(struct flow *f, const char *data, size_t len, size_t *taken, struct err *err)
{
	ssize_t n = f->pipe < 0 ? (ssize_t)len : write(f->pipe, data, len);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 && errno == EPIPE) { /* it saw the end of the archive; the rest is padding */
		close_pipe(f);
		n = (ssize_t)len;
	}
	if (n < 0)
		return err_sys(err, errno, "write to the sandbox");
	*taken = (size_t)n;
	return 1;
}

static int move_plain(struct flow *f, struct err *err)
{
	size_t taken = 0;
	int r = 0;

	if (f->off < f->len)
		r = write_pipe(f, f->buf + f->off, f->len - f->off, &taken, err);
	f->off += taken;
	if (f->off == f->len && f->src_eof)
		close_pipe(f);
	return r;
}

static int move_filtered(struct flow *f, struct err *err)
{
	static char out[BUF];
	uint64_t next = f->filter_at;
	ssize_t n = exec_read(f->filter, EXEC_OUT, &next, out, sizeof(out));
	size_t taken = 0;
	int r;

	if (n < 0)
		return err_sys(err, (int)-n, "output of the decompressor");
	if (n == 0) {
		if (*exec_ended(f->filter))
			close_pipe(f);
		return 0;
	}
	r = write_pipe(f, out, (size_t)n, &taken, err);
	if (r <= 0)
		return r;
	f->filter_at += taken;
	if (!*exec_ended(f->filter) &&
	    exec_consumed(f->filter, f->filter_at, exec_end(f->filter, EXEC_ERR), err) < 0)
		return -1;
	return 1;
}

static bool wants_source(const struct flow *f)
{
	if (f->src_eof)
		return false;
	if (f->filter)
		return !exec_stdin_is_busy(f->filter) && !exec_stdin_is_closed(f->filter);
	return f->off == f->len;
}

static bool has_output(const struct flow *f)
{
	return f->filter ? exec_end(f->filter, EXEC_OUT) > f->filter_at : f->off < f->len;
}

static struct pollfd watch_agent(struct exec *x)
{
	struct agent *a = x ? exec_agent(x) : NULL;

	return (struct pollfd){ a ? agent_fd(a) : -1, (short)(a ? agent_events(a) : 0), 0 };
}

static int one_round(struct flow *f, struct err *err)
{
	struct pollfd p[4] = {
		watch_agent(f->job),
		watch_agent(f->filter),
		{ f->pipe >= 0 && has_output(f) ? f->pipe : -1, POLLOUT, 0 },
		{ wants_source(f) ? f->src : -1, POLLIN, 0 },
	};
	struct err ignored;
	int r;

	if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
		return err_sys(err, errno, "poll");
	if (p[0].revents && exec_agent(f->job))
		agent_dispatch(exec_agent(f->job), &ignored);
	if (p[1].revents && exec_agent(f->filter))
		agent_dispatch(exec_agent(f->filter), &ignored);
	if (p[3].revents && wants_source(f) && read_source(f, err) < 0)
		return -1;
	do
		r = f->filter ? move_filtered(f, err) : move_plain(f, err);
	while (r > 0 && f->filter);
	return r < 0 ? -1 : 0;
}

static int check_filter(struct flow *f, struct err *err)
{
	const struct exec_result *res;
	struct exec_output o;

	if (!f->filter || f->pipe >= 0)
		return 0;
	if (!*exec_ended(f->filter)) { /* padding behind the archive: not worth waiting for */
		exec_kill(f->filter, err);
		return 0;
	}
	if (exec_state(f->filter) == EXEC_FAILED) {
		*err = *exec_error(f->filter);
		return err_ctx(err, "decompress");
	}
	res = exec_result(f->filter);
	if (res->code == 0)
		return 0;
	if (exec_collect(f->filter, &o, err) < 0)
		return -1;
	o.err[strcspn(o.err, "\n")] = '\0';
	err_set(err, ERR_INVALID, "decompress: %.200s", o.err[0] ? o.err : "failed");
	exec_output_fini(&o);
	return -1;
}

static int run_flow(struct flow *f, struct err *err)
{
	while (!*exec_ended(f->job))
		if (one_round(f, err) < 0)
			return -1;
	close_pipe(f);
	if (check_filter(f, err) < 0)
		return -1;
	return files_job_check(f->job, "unpack", err);
}

int unpack_tar(struct unpack *u, int fd, enum unpack_packing packing, unsigned job_flags,
	       struct err *err)
{
	struct flow *f = calloc(1, sizeof(*f));
	int r = 0;

	if (!f)
		return err_sys(err, ENOMEM, "unpack");
	f->u = u;
	f->src = fd;
	f->pipe = -1;
	if (packing != UNPACK_PLAIN)
		r = start_filter(f, packing, err);
	if (!r)
		r = start_job(f, job_flags, err);
	if (!r)
		r = run_flow(f, err);
	close_pipe(f);
	exec_free(f->filter);
	exec_free(f->job);
	free(f);
	return r;
}
