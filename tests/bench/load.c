/* SPDX-License-Identifier: Apache-2.0 */
/* Requests per second and their latency, by kind and number of connections with one request in
 * progress each. One thread of this process is the client. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "daemon.h"

enum { CONNECTIONS_MAX = 64, SESSIONS = 8, SAMPLES_MAX = 1 << 20, FILE_BYTES = 4096 };

static const int connections[] = { 1, 8, CONNECTIONS_MAX };

static const struct kind {
	const char *name, *method;
	const char *tail; /* after the session; NULL: it is entered by its key */
	const char *body; /* NULL: none, or for a PUT this many bytes */
} kinds[] = {
	{ "enter", "POST", NULL, NULL },
	{ "status", "GET", "", NULL },
	{ "read", "GET", "/files/read", NULL },
	{ "write", "PUT", "/files/write", NULL },
	{ "exec", "POST", "/exec", "{\"command\":\"echo hi\"}" },
};

struct load {
	struct request r[SESSIONS];
	double began[CONNECTIONS_MAX], until;
	double *took;
	int n;
};

static struct request put_of(const char *path)
{
	struct request r = request_upload(path, FILE_BYTES);

	r.text = realloc(r.text, r.len + FILE_BYTES);
	must(r.text ? 0 : -1, NULL, "memory");
	memset(r.text + r.len, 'x', FILE_BYTES);
	r.len += FILE_BYTES;
	return r;
}

static struct request request_of(const struct kind *k, int i, const char *id)
{
	char path[128], body[64];

	if (!k->tail) {
		snprintf(body, sizeof(body), "{\"key\":\"load%d\"}", i);
		return request_new(k->method, "/v1/sessions", NULL, body);
	}
	snprintf(path, sizeof(path), "/v1/sessions/%s%s", id, k->tail);
	return strcmp(k->method, "PUT") == 0 ? put_of(path)
					     : request_new(k->method, path, NULL, k->body);
}

static const struct request *again(void *arg, int i, struct client *c)
{
	struct load *l = arg;
	double now = now_us();

	if (c->status) {
		struct err err;

		if (c->status >= 300) {
			err_set(&err, ERR_INTERNAL, "%d %.*s", c->status, (int)c->body_len,
				c->body);
			must(-1, &err, "load");
		}
		if (l->n < SAMPLES_MAX)
			l->took[l->n++] = now - l->began[i];
	}
	if (now >= l->until)
		return NULL;
	l->began[i] = now;
	return &l->r[i % SESSIONS];
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void put(const struct load *l, const struct kind *k, int n, int round, double us, double cpu)
{
	char what[64];

	snprintf(what, sizeof(what), "load_%s_%d", k->name, n);
	qsort(l->took, (size_t)l->n, sizeof(*l->took), by_size);
	put_sample(what, "lodge", "per_s", round, l->n * 1e6 / us);
	put_sample(what, "lodge", "p50", round, l->took[l->n / 2]);
	put_sample(what, "lodge", "p99", round, l->took[(int)(l->n * 0.99)]);
	put_sample(what, "lodge", "cpu_us", round, cpu * 1e6 / l->n);
}

static void measure(const struct bench *b, const struct daemon *d, struct load *l, struct client *c,
		    const struct kind *k, int n, int round)
{
	double t0, t1, cpu;

	for (int i = 0; i < n; i++)
		client_open(&c[i], d->port);
	l->n = 0;
	l->until = now_us() + b->rate_ms * 1e2; /* the first tenth does not count */
	client_drive(c, n, again, l);
	l->n = 0;
	cpu = daemon_cpu_s(d);
	t0 = now_us();
	l->until = t0 + b->rate_ms * 1e3;
	for (int i = 0; i < n; i++)
		c[i].status = 0;
	client_drive(c, n, again, l);
	t1 = now_us();
	put(l, k, n, round, t1 - t0, daemon_cpu_s(d) - cpu);
	for (int i = 0; i < n; i++)
		client_close(&c[i]);
	pause_us(200000);
}

static void prepare(const struct daemon *d, struct client *c, char ids[SESSIONS][64])
{
	static const struct kind file = { "read", "PUT", "/files/read", NULL };

	client_open(c, d->port);
	for (int i = 0; i < SESSIONS; i++) {
		struct request r = request_of(&kinds[0], i, "");

		client_call(c, &r);
		free(r.text);
		client_member(c, "id", ids[i], 64);
		r = request_of(&file, i, ids[i]);
		client_call(c, &r);
		free(r.text);
	}
	client_close(c);
}

static void kind_round(const struct bench *b, const struct daemon *d, struct load *l,
		       struct client *c, const struct kind *k, char ids[SESSIONS][64], int round)
{
	for (int i = 0; i < SESSIONS; i++)
		l->r[i] = request_of(k, i, ids[i]);
	for (size_t i = 0; i < ARRAY_LEN(connections); i++)
		measure(b, d, l, c, k, connections[i], round);
	for (int i = 0; i < SESSIONS; i++)
		free(l->r[i].text);
}

void load_run(const struct bench *b)
{
	static const char *const settings[] = { "LODGE_CONCURRENT=0", NULL };
	int rounds = b->rounds < 3 ? b->rounds : 3;
	struct client *c = calloc(CONNECTIONS_MAX, sizeof(*c));
	struct load l = { .took = malloc(SAMPLES_MAX * sizeof(double)) };
	char ids[SESSIONS][64];
	struct daemon d;

	must(c && l.took ? 0 : -1, NULL, "memory");
	daemon_start(b, &d, "load", settings);
	prepare(&d, c, ids);
	for (int r = 0; r < rounds; r++) {
		fprintf(stderr, "lodge-bench: load over HTTP, round %d\n", r + 1);
		for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
			kind_round(b, &d, &l, c, &kinds[i], ids, r);
	}
	daemon_stop(&d);
	free(c);
	free(l.took);
}
