/* SPDX-License-Identifier: Apache-2.0 */
/* Output over HTTP that is read fast or slowly. front.py has uploads and downloads. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon.h"

enum {
	TIMES = 3,
	BUF = 256 << 10,
	TAIL = 1024,
	SLOW_MS = 3000,
	SLOW_BYTES = 4096,
	SLOW_US = 10000
};
#define LINE "a line of output as programs write them, some sixty bytes long"

static const char lines[] = "yes '" LINE "' | head -c 1G";
static const char stream_type[] = "application/x-ndjson";

static char buf[BUF];

struct traffic {
	struct daemon d;
	struct client c;
	char id[64];
};

static void die(const char *what)
{
	struct err err;

	err_set(&err, ERR_INTERNAL, "%s", what);
	must(-1, &err, "traffic");
}

static struct request exec_request(const struct traffic *t, const char *command)
{
	char path[128], body[256];

	snprintf(path, sizeof(path), "/v1/sessions/%s/exec", t->id);
	snprintf(body, sizeof(body), "{\"command\":\"%s\",\"timeout_ms\":0}", command);
	return request_new("POST", path, stream_type, body);
}

/* ---- output ---------------------------------------------------------------------------------- */

static bool is_end(const char *tail, size_t len)
{
	return len >= 5 && memcmp(tail + len - 5, "0\r\n\r\n", 5) == 0;
}

/* The end of what was read, in order. */
static void keep_tail(char tail[TAIL], size_t *len, size_t n)
{
	size_t more = n < TAIL ? n : TAIL, keep = *len + more > TAIL ? TAIL - more : *len;

	memmove(tail, tail + *len - keep, keep);
	memcpy(tail + keep, buf + n - more, more);
	*len = keep + more;
}

static void read_fast(struct traffic *t, int round)
{
	struct request r = exec_request(t, lines);
	char tail[TAIL];
	double t0 = now_us();
	size_t len = 0;
	ssize_t n = 0;

	client_send(&t->c, &r);
	client_head(&t->c);
	if (t->c.status != 200)
		die(t->c.body);
	do {
		n = recv(t->c.fd, buf, sizeof(buf), 0);
		if (n > 0)
			keep_tail(tail, &len, (size_t)n);
	} while (n > 0 && !is_end(tail, len));
	put_sample("gigabyte_http", "lodge", "us", round, now_us() - t0);
	if (!memmem(tail, len, "\"stdout_bytes\":1073741824", 25))
		die("not all of the output came");
	free(r.text);
}

static void read_slowly(const struct bench *b, struct traffic *t)
{
	struct request r = exec_request(t, "yes");
	struct client *c = calloc(1, sizeof(*c));
	double before, until;

	(void)b;
	must(c ? 0 : -1, NULL, "memory");
	client_open(c, t->d.port);
	before = daemon_kb(&t->d) + daemon_memfd_kb(&t->d);
	client_send(c, &r);
	for (until = now_us() + SLOW_MS * 1e3; now_us() < until; pause_us(SLOW_US))
		if (recv(c->fd, buf, SLOW_BYTES, 0) <= 0)
			die("the stream ended");
	put_value("yes_http/growth_kb", daemon_kb(&t->d) + daemon_memfd_kb(&t->d) - before);
	client_close(c);
	free(c);
	free(r.text);
}

void traffic_run(const struct bench *b)
{
	struct traffic *t = calloc(1, sizeof(*t));

	must(t ? 0 : -1, NULL, "memory");
	daemon_start(b, &t->d, "traffic", NULL);
	client_open(&t->c, t->d.port);
	client_ask(&t->c, "POST", "/v1/sessions", "{\"key\":\"traffic\"}");
	client_member(&t->c, "id", t->id, sizeof(t->id));
	for (int i = 0; i < TIMES; i++) {
		output_pipe("yes '" LINE "' | head -c 1G | cat", "gigabyte_http", i);
		read_fast(t, i);
	}
	read_slowly(b, t);
	client_close(&t->c);
	daemon_stop(&t->d);
	free(t);
}
