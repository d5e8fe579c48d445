/* SPDX-License-Identifier: Apache-2.0 */
/* What ends a stream that has no thread, and a response that is being sent: a reader that stops,
 * an abort, epoll without memory, and other clients. */
#include "http/internal.h"
#include "http_client.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/epoll.h>

#define HOST "Host: a\r\n"

enum { PIECE = 100, BIG = 24 << 20, SLOWLY = 64 << 10, STEPS_MAX = 1000 };

static atomic_int begun, steps, ended;
static int pipes[2];

/* ---- epoll that fails ------------------------------------------------------------------------ */

static atomic_int fail_in; /* the n-th descriptor from now on cannot be added; 0: none */

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	typedef int ctl_fn(int epfd, int op, int fd, struct epoll_event *ev);
	static _Atomic(ctl_fn *) next;
	union {
		void *object;
		ctl_fn *fn;
	} found;

	if (!next) {
		found.object = dlsym(RTLD_NEXT, "epoll_ctl");
		next = found.fn;
	}
	if (op == EPOLL_CTL_ADD && fail_in && atomic_fetch_sub(&fail_in, 1) == 1) {
		errno = ENOSPC;
		return -1;
	}
	return ((ctl_fn *)next)(epfd, op, fd, ev);
}

/* ---- streams --------------------------------------------------------------------------------- */

struct feed {
	struct http_request *rq;
	int (*step)(struct feed *f);
	int fd; /* its source, or -1 */
};

static char big[BIG];

/* The n-th step of /big has found this many unsent bytes, and this deadline. */
static struct {
	size_t pending;
	int64_t deadline;
} seen[STEPS_MAX];
static atomic_int nseen;

static size_t count_pending(const struct http_request *rq)
{
	return rq->out.len - rq->out.at;
}

/* Everything in one piece, and then only what the socket takes of it. */
static int step_big(struct feed *f)
{
	int n = nseen;

	if (http_is_gone(f->rq))
		return -1;
	if (!n && http_stream_write(f->rq, big, BIG) < 0)
		return -1;
	if (n && !count_pending(f->rq))
		return -1;
	seen[n].pending = count_pending(f->rq);
	seen[n].deadline = f->rq->conn->deadline_ms;
	nseen = n + 1 < STEPS_MAX ? n + 1 : n;
	return 60000;
}

/* Writes until the socket is full, and then a little more each time. */
static int step_endless(struct feed *f)
{
	do
		if (http_stream_write(f->rq, big, PIECE) < 0)
			return -1;
	while (!count_pending(f->rq));
	return 20;
}

static int step_abort(struct feed *f)
{
	if (http_stream_write(f->rq, big, PIECE) < 0)
		return -1;
	http_stream_abort(f->rq);
	return -1;
}

static int step_end(struct feed *f)
{
	(void)http_stream_write(f->rq, big, PIECE);
	return -1;
}

static int step_idle(struct feed *f)
{
	if (f->fd >= 0 && read(f->fd, big, 1) == 1)
		return -1;
	return http_is_gone(f->rq) ? -1 : 60000;
}

static int step(void *arg)
{
	struct feed *f = arg;

	steps++;
	return f->step(f);
}

static void end(void *arg)
{
	free(arg);
	ended++;
}

static void handle(void *arg, struct http_request *rq)
{
	static const struct http_stream_ops ops = { step, end };
	static const struct {
		const char *path;
		int (*step)(struct feed *f);
	} table[] = {
		{ "/big", step_big }, { "/endless", step_endless }, { "/abort", step_abort },
		{ "/end", step_end }, { "/idle", step_idle },	    { "/source", step_idle },
	};
	struct feed *f;

	(void)arg;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(http_path(rq), table[i].path) != 0)
			continue;
		f = calloc(1, sizeof(*f));
		*f = (struct feed){ rq, table[i].step, -1 };
		if (!strcmp(http_path(rq), "/source"))
			http_stream_source(rq, f->fd = pipes[0]);
		CHECK(http_stream_begin(rq, 200, "text/plain") == 0);
		http_stream_detach(rq, &ops, f);
		begun++;
		return;
	}
	http_reply_static(rq, 200, "text/plain", big, strcmp(http_path(rq), "/file") ? 1 : BIG);
}

static bool begin(const struct http_opts *o)
{
	begun = steps = ended = nseen = fail_in = 0;
	return serve(o, "127.0.0.1:0");
}

/* ---- deadlines ------------------------------------------------------------------------------- */

/* Each byte that a client takes gives it as much time as the slowest one needs for it. */
static void progress_moves_the_deadline(void)
{
	struct answer a = { .status = 0 };
	int fd;

	CHECK(begin(&(struct http_opts){ .handler = handle }));
	fd = dial();
	CHECK(send_text(fd, "GET /big HTTP/1.1\r\n" HOST "\r\n") && read_head(fd, &a));
	while (nseen < 5 && read_more(fd, &a, SLOWLY)) /* slower than the server */
		nap(1);
	while (!ended && recv(fd, a.body, a.cap, 0) > 0)
		;
	CHECK(EVENTUALLY(ended == 1));
	printf("# %d steps\n", nseen);
	CHECK(nseen >= 3); /* it did not fit into the socket */
	CHECK(!seen[0].deadline && seen[1].deadline);
	for (int i = 2; i < nseen; i++)
		CHECK(seen[i].deadline - seen[1].deadline ==
		      (int64_t)((seen[1].pending - seen[i].pending) / BYTES_PER_MS));
	close(fd);
	free(a.body);
	stop();
}

/* Whatever else happens to the stream. */
static void a_reader_that_stops_is_cut(void)
{
	int fd;

	CHECK(begin(&(struct http_opts){ .handler = handle, .slow_s = 1 }));
	fd = dial();
	CHECK(send_text(fd, "GET /endless HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(EVENTUALLY(ended == 1 && numbers().connections == 0));
	close(fd);
	stop();
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* Without chunks an orderly close would look like a complete response. */
static void an_aborted_stream_looks_truncated(void)
{
	static const struct {
		const char *request;
		bool complete;
	} table[] = {
		{ "GET /abort HTTP/1.0\r\n\r\n", false },
		{ "GET /end HTTP/1.0\r\n\r\n", true },
	};
	struct answer a = { .status = 0 };
	char buf[4096];

	CHECK(begin(&(struct http_opts){ .handler = handle }));
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int fd = dial();
		ssize_t n;

		CHECK(send_text(fd, table[i].request) && read_head(fd, &a));
		CHECK(a.status == 200 && !strcasestr(a.head, "chunked"));
		do
			n = recv(fd, buf, sizeof(buf), 0);
		while (n > 0);
		CHECK(table[i].complete ? n == 0 : n < 0 && errno == ECONNRESET);
		close(fd);
	}
	CHECK(EVENTUALLY(ended == 2 && numbers().connections == 0));
	stop();
}

/* The server's set needs no memory to take the connection back. */
static void a_stream_that_ended_needs_no_memory(void)
{
	struct answer a = { .status = 0 };
	int fd;

	CHECK(begin(&(struct http_opts){ .handler = handle }));
	fd = dial();
	CHECK(send_text(fd, "GET /source HTTP/1.1\r\n" HOST "\r\n") && read_head(fd, &a));
	CHECK(EVENTUALLY(begun == 1 && steps == 1)); /* both descriptors are in the set */
	fail_in = 1;
	CHECK(write(pipes[1], "x", 1) == 1);
	CHECK(read_chunks(fd, &a) && ended == 1);
	CHECK(send_text(fd, "GET / HTTP/1.1\r\n" HOST "\r\n") && read_response(fd, &a));
	CHECK(a.status == 200 && fail_in == 1);
	close(fd);
	fail_in = 0;
	free(a.body);
	stop();
}

/* Neither its client nor its source would be heard. */
static void a_stream_that_cannot_be_watched_ends(void)
{
	struct answer a = { .status = 0 };

	CHECK(begin(&(struct http_opts){ .handler = handle }));
	for (int i = 1; i <= 2; i++) {
		int fd = dial();

		CHECK(send_text(fd, "GET / HTTP/1.1\r\n" HOST "\r\n") && read_response(fd, &a));
		fail_in = i;
		CHECK(send_text(fd, "GET /source HTTP/1.1\r\n" HOST "\r\n"));
		CHECK(!read_response(fd, &a) && is_closed(fd));
		CHECK(EVENTUALLY(ended == i && numbers().connections == 0));
		CHECK(!fail_in && numbers().requests == 0);
		close(fd);
	}
	free(a.body);
	stop();
}

/* ---- eviction -------------------------------------------------------------------------------- */

/* Whether no thread has the oldest connection, or the newest. */
static bool is_armed(bool newest)
{
	bool armed;

	pthread_mutex_lock(&server->lock);
	armed = (newest ? server->strangers.newest : server->strangers.oldest)->armed;
	pthread_mutex_unlock(&server->lock);
	return armed;
}

/* A client that does not read makes place for others, as an idle one does. */
static void a_response_that_is_being_sent_is_evicted(void)
{
	struct answer a = { .status = 0 };
	int slow, fds[3];

	CHECK(begin(&(struct http_opts){ .handler = handle, .max_connections = 3 }));
	slow = dial();
	CHECK(send_text(slow, "GET /file HTTP/1.1\r\n" HOST "\r\n") && read_head(slow, &a));
	for (int i = 0; i < 2; i++) {
		fds[i] = dial();
		CHECK(send_text(fds[i], "GET / HTTP/1.1\r\n" HOST "\r\n"));
		CHECK(read_response(fds[i], &a));
	}
	CHECK(numbers().connections == 3 && EVENTUALLY(numbers().requests == 1));
	CHECK(EVENTUALLY(is_armed(false)));
	fds[2] = dial();
	CHECK(send_text(fds[2], "GET / HTTP/1.1\r\n" HOST "\r\n") && read_response(fds[2], &a));
	CHECK(EVENTUALLY(numbers().connections == 3 && numbers().requests == 0));
	a.len = 0;
	CHECK(!read_more(slow, &a, BIG) && is_closed(slow));
	for (int i = 0; i < 3; i++) {
		CHECK(send_text(fds[i], "GET / HTTP/1.1\r\n" HOST "\r\n"));
		CHECK(read_response(fds[i], &a));
		close(fds[i]);
	}
	close(slow);
	free(a.body);
	stop();
}

/* A stream is not: its client waits for it. */
static void a_stream_is_not_evicted(void)
{
	struct answer a = { .status = 0 };
	int stream, fds[3];

	CHECK(begin(&(struct http_opts){ .handler = handle, .max_connections = 2 }));
	stream = dial();
	CHECK(send_text(stream, "GET /idle HTTP/1.1\r\n" HOST "\r\n") && read_head(stream, &a));
	for (int i = 0; i < 3; i++) {
		fds[i] = dial(); /* takes the place of the last one */
		CHECK(send_text(fds[i], "GET / HTTP/1.1\r\n" HOST "\r\n"));
		CHECK(read_response(fds[i], &a) && EVENTUALLY(is_armed(true)));
	}
	CHECK(is_closed(fds[0]) && is_closed(fds[1]));
	CHECK(ended == 0 && recv(stream, big, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	close(stream);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	free(a.body);
	stop();
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK))
		return 1;
	RUN(progress_moves_the_deadline);
	RUN(a_reader_that_stops_is_cut);
	RUN(an_aborted_stream_looks_truncated);
	RUN(a_stream_that_ended_needs_no_memory);
	RUN(a_stream_that_cannot_be_watched_ends);
	RUN(a_response_that_is_being_sent_is_evicted);
	RUN(a_stream_is_not_evicted);
	return tap_done();
}
