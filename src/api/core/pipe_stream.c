/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/pipe_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "api/core/internal.h"

enum { PIECE = 64 << 10, LOOK_MS = 500 };

struct flow {
	pipe_stream_fn *fn;
	void *arg;
	int fd; /* the thread's */
	pthread_t thread;
	int r;
	struct err err;
};

static void *run(void *arg)
{
	struct flow *f = arg;

	f->r = f->fn(f->arg, f->fd, &f->err);
	close(f->fd); /* what the other side waits for */
	return NULL;
}

/* Takes over fd. */
static int start(struct flow *f, pipe_stream_fn *fn, void *arg, int fd, struct err *err)
{
	int r;

	*f = (struct flow){ .fn = fn, .arg = arg, .fd = fd };
	r = pthread_create(&f->thread, NULL, run, f);
	if (r == 0)
		return 0;
	close(fd);
	return err_sys(err, r, "thread");
}

static int join(struct flow *f, struct err *err)
{
	pthread_join(f->thread, NULL);
	if (f->r < 0)
		*err = f->err;
	return f->r;
}

static int new_pipe(int *ret_read, int *ret_write, struct err *err)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	*ret_read = p[0];
	*ret_write = p[1];
	return 0;
}

/* False: the caller is gone. */
static bool wait_for(struct api_call *c, int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	while (poll(&p, 1, LOOK_MS) <= 0)
		if (http_is_gone(c->rq))
			return false;
	return true;
}

/* ---- out ------------------------------------------------------------------------------------- */

/* 0 at the end; -1: the caller is gone. */
static ssize_t next_piece(struct api_call *c, int fd, char *buf)
{
	ssize_t n;

	do {
		if (!wait_for(c, fd, POLLIN))
			return -1;
		n = read(fd, buf, PIECE);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* False: not all of it could be sent. */
static bool send_all(struct api_call *c, int fd, char *buf, ssize_t n)
{
	while (n > 0) {
		if (http_stream_write(c->rq, buf, (size_t)n) < 0)
			return false;
		n = next_piece(c, fd, buf);
	}
	return n == 0;
}

/* The first piece is waited for: until then a failure can still be told. */
int pipe_stream_out(struct api_call *c, const char *type, pipe_stream_fn *fn, void *arg,
		    struct err *err)
{
	auto_close int from = -1;
	char *buf = arena_alloc(c->arena, PIECE);
	bool whole = false, begun;
	struct flow f;
	ssize_t n;
	int to = -1;

	if (!buf)
		return err_sys(err, ENOMEM, "stream");
	if (new_pipe(&from, &to, err) < 0 || start(&f, fn, arg, to, err) < 0)
		return -1;
	n = next_piece(c, from, buf);
	begun = n > 0 && http_stream_begin(c->rq, 200, type) == 0;
	if (begun && strcmp(http_method(c->rq), "HEAD") != 0)
		whole = send_all(c, from, buf, n);
	close(steal_fd(&from)); /* ends what still writes */
	if (join(&f, err) < 0) {
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

/* ---- in -------------------------------------------------------------------------------------- */

/* 1: the other side wants no more. */
static int put_piece(struct api_call *c, int fd, const char *at, size_t len, struct err *err)
{
	while (len) {
		ssize_t n;

		if (!wait_for(c, fd, POLLOUT))
			return err_set(err, ERR_UNAVAILABLE, "client disconnected");
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

static int put_body(struct api_call *c, int fd, char *buf, struct err *err)
{
	ssize_t n;
	int r;

	while ((n = http_body_read(c->rq, buf, PIECE, err)) > 0) {
		r = put_piece(c, fd, buf, (size_t)n, err);
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
	struct flow f;
	int from = -1, r;

	if (!buf)
		return err_sys(err, ENOMEM, "stream");
	if (new_pipe(&from, &to, err) < 0 || start(&f, fn, arg, from, err) < 0)
		return -1;
	/* so that one who reads nothing cannot hold us when the caller is gone */
	(void)fcntl(to, F_SETFL, O_NONBLOCK);
	r = put_body(c, to, buf, err);
	close(steal_fd(&to));
	return join(&f, r < 0 ? &ignored : err) < 0 ? -1 : r;
}
