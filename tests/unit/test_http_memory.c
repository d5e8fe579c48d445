/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of connections and streams. A sanitizer's memory is not the server's, so `./dev test`
 * runs this in the build without one. */
#include "http/internal.h"
#include "http_client.h"

#include <sys/resource.h>

#define HOST "Host: a\r\n"

enum { LINE = 61, MANY = 2000 };

struct counter {
	struct http_request *rq;
	long sent, total;
};

static int step(void *arg)
{
	struct counter *c = arg;
	char line[64];

	while (c->sent < c->total && !http_stream_is_full(c->rq)) {
		snprintf(line, sizeof(line), "%060ld\n", c->sent);
		if (http_stream_write(c->rq, line, LINE) < 0)
			return -1;
		c->sent++;
	}
	return c->sent == c->total || http_is_gone(c->rq) ? -1 : 60000;
}

static void handle(void *arg, struct http_request *rq)
{
	static const struct http_stream_ops ops = { step, free };
	struct counter *c;

	(void)arg;
	if (strcmp(http_path(rq), "/stream") != 0) {
		http_reply(rq, 200, NULL, NULL, 0);
		return;
	}
	c = calloc(1, sizeof(*c));
	*c = (struct counter){ .rq = rq, .total = atol(http_query(rq, "n")) };
	CHECK(http_stream_begin(rq, 200, "text/plain") == 0);
	http_stream_detach(rq, &ops, c);
}

static long resident_kb(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kb = 0;

	while (f && fgets(line, sizeof(line), f))
		(void)sscanf(line, "VmRSS: %ld", &kb);
	if (f)
		fclose(f);
	return kb;
}

/* Each has made a request before, because only then it has its full cost. */
static void idle_connections_are_small(void)
{
	enum { EACH_KB = 1 };
	struct answer a = { .status = 0 };
	static int fds[MANY];
	struct rlimit files;
	long before;

	CHECK(!getrlimit(RLIMIT_NOFILE, &files));
	files.rlim_cur = files.rlim_max;
	CHECK(!setrlimit(RLIMIT_NOFILE, &files));
	if (files.rlim_cur < 2 * MANY + 100)
		SKIP("too few descriptors are allowed");
	CHECK(status_of("GET / HTTP/1.1\r\n" HOST "\r\n") == 200);
	before = resident_kb();
	for (int i = 0; i < MANY; i++) {
		fds[i] = dial();
		CHECK(send_text(fds[i], "GET / HTTP/1.1\r\n" HOST "\r\n") &&
		      read_response(fds[i], &a));
	}
	printf("# %ld kB for %d connections\n", resident_kb() - before, MANY);
	CHECK(numbers().connections >= MANY && resident_kb() - before <= (long)MANY * EACH_KB);
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
	/* the memory is released */
	CHECK(EVENTUALLY(numbers().connections == 0 && resident_kb() - before < 2 * MANY));
	free(a.body);
}

/* A reader that never catches up: what it has taken is not kept. */
static void a_stream_keeps_only_what_is_unread(void)
{
	enum { BIG = 600000 };
	struct answer a = { .status = 0 };
	static char buf[64 << 10];
	struct rusage before, after;
	int small = 64 << 10, fd;
	size_t got = 0;
	ssize_t n;

	/* so that the socket never takes all that waits; new connections inherit it */
	CHECK(!setsockopt(server->listeners[0].fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)));
	fd = dial();
	CHECK(!getrusage(RUSAGE_SELF, &before));
	CHECK(send_text(fd, "GET /stream?n=600000 HTTP/1.1\r\n" HOST "\r\n") && read_head(fd, &a));
	while (got < (size_t)BIG * LINE && (n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		got += (size_t)n;
		nap(1); /* the server is faster */
	}
	CHECK(got >= (size_t)BIG * LINE && !getrusage(RUSAGE_SELF, &after));
	CHECK(after.ru_maxrss - before.ru_maxrss < 20 << 10);
	close(fd);
	free(a.body);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	printf("1..0 # SKIP built with a sanitizer\n");
	return 0;
#endif
	if (!serve(&(struct http_opts){ .handler = handle, .max_per_address = MANY + 10 },
		   "127.0.0.1:0"))
		return 1;
	RUN(idle_connections_are_small);
	RUN(a_stream_keeps_only_what_is_unread);
	stop();
	return tap_done();
}
