/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/pipe_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "api/core/internal.h"

enum { PIECE = 64 << 10, LOOK_MS = 500 };

struct pipe_stream {
	pipe_stream_fn *fn;
	void *arg;
	int fd; /* used by the thread */
	pthread_t thread;
	int r;
	struct err err;
	/* The thread failed. The other end may stay open: in a message that a sandbox never
	 * reads. */
	atomic_bool failed;
};

static void *run(void *arg)
{
	struct pipe_stream *f = arg;

	f->r = f->fn(f->arg, f->fd, &f->err);
	f->failed = f->r < 0;
	close(f->fd); /* protects and signals `done` */
	return NULL;
}

/* Takes over fd. */
static int start_stream(struct pipe_stream *f, pipe_stream_fn *fn, void *arg, int fd,
			struct err *err)
{
	int r;

	*f = (struct pipe_stream){ .fn = fn, .arg = arg, .fd = fd };
	r = pthread_create(&f->thread, NULL, run, f);
	if (r == 0)
		return 0;
	close(fd);
	return err_sys(err, r, "thread");
}

static int join_stream(struct pipe_stream *f, struct err *err)
{
	pthread_join(f->thread, NULL);
	if (f->r < 0)
		*err = f->err;
	return f->r;
}

/* False: the client disconnected, or the thread failed. */
static bool wait_for(struct api_call *c, const struct pipe_stream *f, int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	while (poll(&p, 1, LOOK_MS) <= 0)
		if (f->failed || http_is_gone(c->rq))
			return false;
	return true;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* 0: end; -1: the client disconnected, or the thread failed. */
static ssize_t next_piece(struct api_call *c, const struct pipe_stream *f, int fd, char *buf)
{
	ssize_t n;

	do {
		if (!wait_for(c, f, fd, POLLIN))
			return -1;
		n = read(fd, buf, PIECE);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* False: the stream is incomplete. */
static bool send_all(struct api_call *c, const struct pipe_stream *f, int fd, char *buf, ssize_t n)
{
	while (n > 0) {
		if (http_stream_write(c->rq, buf, (size_t)n) < 0)
			return false;
		n = next_piece(c, f, fd, buf);
	}
	return n == 0;
}

/* Waits for the first bytes: until then an error can still be reported as such. */
int pipe_stream_out(struct api_call *c, const char *type, pipe_stream_fn *fn, void *arg,
		    struct err *err)
{
	auto_close int from = -1;
	char *buf = arena_alloc(c->arena, PIECE);
	bool whole = false, begun;
	struct pipe_stream f;
	ssize_t n;
	int p[2];

	if (!buf)
		return err_sys(err, ENOMEM, "stream");
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	from = p[0];
	if (start_stream(&f, fn, arg, p[1], err) < 0)
		return -1;
	n = next_piece(c, &f, from, buf);
	begun = n > 0 && http_stream_begin(c->rq, 200, type) == 0;
	if (begun && strcmp(http_method(c->rq), "HEAD") != 0)
		whole = send_all(c, &f, from, buf, n);
	close(steal_fd(&from)); /* unblocks the writer */
	if (join_stream(&f, err) < 0) {
		if (whole)
			api_log_error(c, err);
		if (begun)
			http_stream_abort(c->rq);
		return begun ? 0 : -1;
	}
	if (begun && !whole)
		http_stream_abort(c->rq);
	if (n == 0)
		http_reply(c->rq, 200, type, NULL, 0);
	return n < 0 ? err_set(err, ERR_UNAVAILABLE, "client disconnected") : 0;
}

/* ---- input ----------------------------------------------------------------------------------- */

/* 1: the reader has closed the pipe, or the thread failed. */
static int put_piece(struct api_call *c, const struct pipe_stream *f, int fd, const char *at,
		     size_t len, struct err *err)
{
	while (len) {
		ssize_t n;

		if (!wait_for(c, f, fd, POLLOUT))
			return f->failed ? 1 : err_set(err, ERR_UNAVAILABLE, "client disconnected");
		n = write(fd, at, len);
		if (n < 0 && errno == EPIPE)
			return 1;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return err_sys(err, errno, "pipe");
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int put_body(struct api_call *c, const struct pipe_stream *f, int fd, char *buf,
		    struct err *err)
{
	ssize_t n;
	int r;

	while ((n = http_body_read(c->rq, buf, PIECE, err)) > 0) {
		r = put_piece(c, f, fd, buf, (size_t)n, err);
		if (r)
			return r < 0 ? -1 : 0;
	}
	return n < 0 ? -1 : 0;
}

int pipe_stream_in(struct api_call *c, pipe_stream_fn *fn, void *arg, struct err *err)
{
	auto_close int to = -1;
	char *buf = arena_alloc(c->arena, PIECE);
	struct err ignored;
	struct pipe_stream f;
	int p[2], r;

	if (!buf)
		return err_sys(err, ENOMEM, "stream");
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	to = p[1];
	if (start_stream(&f, fn, arg, p[0], err) < 0)
		return -1;
	/* a reader that does not read must not block this thread after a disconnect */
	(void)fcntl(to, F_SETFL, O_NONBLOCK);
	r = put_body(c, &f, to, buf, err);
	close(steal_fd(&to));
	return join_stream(&f, r < 0 ? &ignored : err) < 0 ? -1 : r;
}
