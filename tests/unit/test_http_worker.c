/* SPDX-License-Identifier: Apache-2.0 */
/* How many threads run requests: as many as there are processors, and more only if they block. */
#include "http/server.h"
#include "http_client.h"

#include <sched.h>
#include <time.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

enum { MANY = 64, ROUNDS = 100, SPIN_US = 300 };

static atomic_int inside, peak;
static atomic_bool go_on;

static int processors(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	return CPU_COUNT(&set) < 2 ? 2 : CPU_COUNT(&set);
}

/* Uses this time of a processor, however long that takes. */
static void spin(long us)
{
	struct timespec t;
	long end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	end = t.tv_sec * 1000000 + t.tv_nsec / 1000 + us;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_sec * 1000000 + t.tv_nsec / 1000 < end);
}

static void handle(void *arg, struct http_request *rq)
{
	int now = ++inside;

	(void)arg;
	if (now > peak)
		peak = now;
	if (!strcmp(http_path(rq), "/wait"))
		EVENTUALLY(go_on);
	else if (!strcmp(http_path(rq), "/spin"))
		spin(SPIN_US);
	inside--;
	http_reply(rq, 200, "text/plain", "", 0);
}

static void send_all(const int fds[], int n, const char *request)
{
	for (int i = 0; i < n; i++)
		CHECK(send_text(fds[i], request));
}

static void read_all(const int fds[], int n)
{
	struct answer a = { .status = 0 };

	for (int i = 0; i < n; i++)
		CHECK(read_response(fds[i], &a) && a.status == 200);
	free(a.body);
}

/* A busy machine makes short requests look long; one round that it leaves alone is enough. */
static void short_requests_share_the_processors(void)
{
	int fds[MANY], lowest = MANY;

	CHECK(serve(&(const struct http_opts){ .handler = handle }, "127.0.0.1:0"));
	for (int i = 0; i < MANY; i++)
		fds[i] = dial();
	for (int i = 0; i < ROUNDS && lowest > processors(); i++) {
		CHECK(EVENTUALLY(inside == 0));
		peak = 0;
		send_all(fds, MANY, GET("/spin"));
		read_all(fds, MANY);
		lowest = peak < lowest ? peak : lowest;
	}
	CHECK(lowest <= processors());
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
	stop();
}

static void requests_that_wait_stop_no_other(void)
{
	int n = 2 * processors() + 1, *fds = calloc((size_t)n, sizeof(*fds));

	CHECK(fds && serve(&(const struct http_opts){ .handler = handle }, "127.0.0.1:0"));
	go_on = false;
	for (int i = 0; i < n; i++)
		fds[i] = dial();
	send_all(fds, n, GET("/wait"));
	CHECK(EVENTUALLY(inside == n));
	CHECK(status_of(GET("/")) == 200);
	go_on = true;
	read_all(fds, n);
	for (int i = 0; i < n; i++)
		close(fds[i]);
	free(fds);
	stop();
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	RUN(short_requests_share_the_processors);
	RUN(requests_that_wait_stop_no_other);
	return tap_done();
}
