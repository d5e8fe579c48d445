/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that go on after their handler has returned. */
#include "http/conn_io.h"
#include "http/server.h"
#include "http_client.h"

#include <dirent.h>

#define HOST "Host: a\r\n"

enum { MANY = 300, LINES = 20, LINE = 61 };

/* A stream of numbered lines; /wake has one line per call of wake_all(). */
struct counter {
	struct counter *next;
	struct http_request *rq;
	long sent, total, allowed;
	bool runs, broken;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct counter *counters;
static atomic_int begun, ended, overlaps;

static bool send_line(struct counter *c)
{
	char line[64];

	snprintf(line, sizeof(line), "%060ld\n", c->sent);
	if (http_stream_write(c->rq, line, LINE) < 0)
		return false;
	c->sent++;
	return true;
}

static int step(void *arg)
{
	struct counter *c = arg;
	long allowed;

	overlaps += c->runs;
	c->runs = true;
	pthread_mutex_lock(&mutex);
	allowed = c->allowed;
	pthread_mutex_unlock(&mutex);
	while (c->sent < allowed && !http_stream_is_full(c->rq))
		if (!send_line(c))
			return -1;
	c->runs = false;
	if (c->sent == c->total || http_is_gone(c->rq))
		return -1;
	return 60000; /* everything else is an event */
}

static void end(void *arg)
{
	struct counter **p = &counters, *c = arg;

	pthread_mutex_lock(&mutex);
	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	pthread_mutex_unlock(&mutex);
	free(c);
	ended++;
}

static void wake_all(void)
{
	pthread_mutex_lock(&mutex);
	for (struct counter *c = counters; c; c = c->next) {
		c->allowed++;
		http_stream_wake(c->rq);
	}
	pthread_mutex_unlock(&mutex);
}

static void handle_stream(struct http_request *rq)
{
	static const struct http_stream_ops ops = { step, end };
	struct counter *c = calloc(1, sizeof(*c));

	c->rq = rq;
	c->total = atol(http_query(rq, "n"));
	c->allowed = http_query(rq, "wake") ? 0 : c->total;
	CHECK(http_stream_begin(rq, 200, "text/plain") == 0);
	pthread_mutex_lock(&mutex);
	c->next = counters;
	counters = c;
	pthread_mutex_unlock(&mutex);
	http_stream_detach(rq, &ops, c);
	begun++;
}

/* ---- an upgraded connection ------------------------------------------------------------------ */

struct echo {
	struct http_request *rq;
	struct conn_io *io;
	char buf[256];
	size_t len;
};

static int step_echo(void *arg)
{
	struct echo *e = arg;
	ssize_t n = conn_io_recv(e->io, e->buf + e->len, sizeof(e->buf) - e->len);

	if (n == 0 || (n < 0 && errno != EAGAIN))
		return -1;
	e->len += n > 0 ? (size_t)n : 0;
	if (e->len) {
		n = conn_io_send(e->io, &(struct iovec){ e->buf, e->len }, 1, false);
		e->len = n == (ssize_t)e->len ? 0 : e->len;
	}
	http_stream_watch(e->rq, POLLIN);
	return 60000;
}

static void end_echo(void *arg)
{
	free(arg);
	ended++;
}

static void handle_echo(struct http_request *rq)
{
	static const struct http_stream_ops ops = { step_echo, end_echo };
	struct echo *e = calloc(1, sizeof(*e));
	const void *extra;
	struct err why;

	e->rq = rq;
	CHECK(http_upgrade(rq, "echo", &e->io, &extra, &e->len, &why) == 0);
	memcpy(e->buf, extra, e->len);
	http_stream_detach(rq, &ops, e);
	begun++;
}

static void handle(void *arg, struct http_request *rq)
{
	(void)arg;
	if (!strcmp(http_path(rq), "/stream"))
		handle_stream(rq);
	else if (!strcmp(http_path(rq), "/echo"))
		handle_echo(rq);
	else
		http_reply(rq, 200, NULL, NULL, 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static int count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = -2; /* . and .. */

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static bool is_right(const struct answer *a, long lines)
{
	if (a->len != (size_t)lines * LINE)
		return false;
	for (long i = 0; i < lines; i++) {
		char line[LINE + 1];

		snprintf(line, sizeof(line), "%060ld\n", i);
		if (memcmp(a->body + i * LINE, line, LINE) != 0)
			return false;
	}
	return true;
}

/* More than there may be requests; each gets every line, and none has a thread. */
static void many_streams_need_few_threads(void)
{
	struct answer a = { .status = 0 };
	static int fds[MANY];

	begun = ended = overlaps = 0;
	for (int i = 0; i < MANY; i++) {
		fds[i] = dial();
		CHECK(send_text(fds[i], "GET /stream?wake&n=20 HTTP/1.1\r\n" HOST "\r\n"));
	}
	CHECK(EVENTUALLY(begun == MANY));
	CHECK(EVENTUALLY(count_threads() < 20));
	CHECK(status_of("GET / HTTP/1.1\r\n" HOST "\r\n") == 200);
	for (int i = 0; i < LINES; i++)
		wake_all();
	for (int i = 0; i < MANY; i++) {
		CHECK(read_response(fds[i], &a) && is_right(&a, LINES));
		/* the connection goes on */
		CHECK(send_text(fds[i], "GET / HTTP/1.1\r\n" HOST "\r\n") &&
		      read_response(fds[i], &a) && a.status == 200);
		close(fds[i]);
	}
	CHECK(EVENTUALLY(ended == MANY && numbers().requests == 0) && overlaps == 0);
	free(a.body);
}

static void a_slow_reader_gets_everything(void)
{
	enum { BIG = 300000 };
	struct answer a = { .status = 0 };
	int fd = dial();

	begun = ended = 0;
	CHECK(send_text(fd, "GET /stream?n=300000 HTTP/1.1\r\n" HOST "\r\n"));
	CHECK(EVENTUALLY(begun == 1));
	nap(300);
	CHECK(ended == 0); /* it waits for the reader */
	CHECK(read_response(fd, &a) && is_right(&a, BIG));
	CHECK(EVENTUALLY(ended == 1));
	close(fd);
	free(a.body);
}

static void a_disconnect_ends_a_stream(void)
{
	begun = ended = 0;
	for (int i = 0; i < 20; i++) {
		int fd = dial();

		CHECK(send_text(fd, i % 2 ? "GET /stream?wake&n=20 HTTP/1.1\r\n" HOST "\r\n"
					  : "GET /stream?n=300000 HTTP/1.1\r\n" HOST "\r\n"));
		CHECK(EVENTUALLY(begun == i + 1));
		close(fd);
	}
	CHECK(EVENTUALLY(ended == 20 && numbers().connections == 0 && numbers().requests == 0));
}

static void an_upgraded_connection_needs_no_thread(void)
{
	struct answer a = { .status = 0 };
	char buf[8] = "";
	int fd = dial();

	begun = ended = 0;
	CHECK(send_text(fd, "GET /echo HTTP/1.1\r\n" HOST
			    "Connection: Upgrade\r\nUpgrade: echo\r\n\r\nab"));
	CHECK(read_head(fd, &a) && a.status == 101);
	CHECK(read_exactly(fd, buf, 2) && !strcmp(buf, "ab"));
	for (int i = 0; i < 100; i++)
		CHECK(send_text(fd, "cd") && read_exactly(fd, buf, 2) && !strcmp(buf, "cd"));
	shutdown(fd, SHUT_WR);
	CHECK(is_closed(fd));
	close(fd);
	CHECK(EVENTUALLY(ended == 1 && numbers().connections == 0));
}

static void *wake_often(void *arg)
{
	while (!*(atomic_bool *)arg)
		wake_all();
	return NULL;
}

/* Streams are woken while clients disconnect and the server ends. */
static void the_end_of_the_server_ends_all(void)
{
	static atomic_bool stopped;
	pthread_t thread;
	int fds[40];

	begun = ended = 0;
	CHECK(!pthread_create(&thread, NULL, wake_often, &stopped));
	for (int i = 0; i < 40; i++) {
		fds[i] = dial();
		CHECK(send_text(fds[i], "GET /stream?wake&n=10000000 HTTP/1.1\r\n" HOST "\r\n"));
	}
	CHECK(EVENTUALLY(begun == 40));
	for (int i = 0; i < 20; i++)
		close(fds[i]);
	stop();
	CHECK(ended == 40 && !counters);
	stopped = true;
	pthread_join(thread, NULL);
	for (int i = 20; i < 40; i++) {
		CHECK(is_closed(fds[i]));
		close(fds[i]);
	}
}

int main(void)
{
	if (!serve(&(struct http_opts){ .handler = handle, .max_requests = 50 }, "127.0.0.1:0"))
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	RUN(many_streams_need_few_threads);
	RUN(a_slow_reader_gets_everything);
	RUN(a_disconnect_ends_a_stream);
	RUN(an_upgraded_connection_needs_no_thread);
	RUN(the_end_of_the_server_ends_all);
	return tap_done();
}
