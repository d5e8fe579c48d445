/* SPDX-License-Identifier: Apache-2.0 */
/* lodged over HTTP: the latency for one client, and a burst of many. A bare spawn and bwrap are
 * measured in every round for comparison. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"

enum { BURST = 100, WARM = 8, POOL_REST_US = 30000 };

static const char echo_text[] = "{\"command\":\"echo hi\"}";
/* an environment that the spare shell does not have */
static const char unlike_text[] = "{\"command\":\"echo hi\",\"env\":{\"BENCH\":\"1\"}}";

/* ---- one client ------------------------------------------------------------------------------ */

static void enter(struct client *c, const char *key, char id[64])
{
	char body[128];

	snprintf(body, sizeof(body), "{\"key\":\"%s\"}", key);
	client_ask(c, "POST", "/v1/sessions", body);
	client_member(c, "id", id, 64);
}

static void check_hi(const struct client *c)
{
	struct err err;
	char out[16];

	client_member(c, "stdout", out, sizeof(out));
	err_set(&err, ERR_INTERNAL, "it said '%s'", out);
	must(strcmp(out, "hi\\n"), &err, "echo hi over HTTP");
}

static void run(struct client *c, const char *id, const char *body)
{
	char path[128];

	snprintf(path, sizeof(path), "/v1/sessions/%s/exec", id);
	client_ask(c, "POST", path, body);
	check_hi(c);
}

static void destroy(struct client *c, const char *id)
{
	char path[128];

	snprintf(path, sizeof(path), "/v1/sessions/%s", id);
	client_ask(c, "DELETE", path, NULL);
}

static void first_command(struct client *c, const char *what, int round, int n, unsigned gap)
{
	int misses = 0;

	for (int i = 0; i < n; i++) {
		char id[64], source[16];
		double t0;

		pause_us(gap);
		t0 = now_us();
		enter(c, "first", id);
		put_sample(what, "lodge", "made", round, now_us() - t0);
		client_member(c, "source", source, sizeof(source));
		misses += strcmp(source, "pool") != 0;
		run(c, id, echo_text);
		put_sample(what, "lodge", "end", round, now_us() - t0);
		destroy(c, id);
	}
	if (misses && strcmp(what, "http_pool") == 0)
		put_note("over HTTP: %d of %d of round %d missed the pool", misses, n, round);
}

static void commands(struct client *c, const char *id, const char *what, const char *body,
		     int round, int n)
{
	for (int i = 0; i < n; i++) {
		double t0;

		pause_us(GAP_US);
		t0 = now_us();
		run(c, id, body);
		put_sample(what, "lodge", "end", round, now_us() - t0);
	}
}

static void latency_round(const struct bench *b, struct client *pooled, struct client *plain,
			  int round)
{
	char id[64];

	fprintf(stderr, "lodge-bench: over HTTP, round %d of %d\n", round + 1, b->rounds);
	peer_ask(b, BARE_BASH, round, PEER_HTTP);
	if (pooled)
		first_command(pooled, "http_pool", round, b->n, POOL_REST_US);
	first_command(plain, "http_cold", round, b->n, GAP_US);
	enter(plain, "live", id);
	run(plain, id, unlike_text);
	commands(plain, id, "http_live", unlike_text, round, b->n);
	run(plain, id, echo_text);
	pause_us(20000);
	commands(plain, id, "http_armed", echo_text, round, b->n);
	destroy(plain, id);
	pause_us(100000);
}

/* ---- a burst --------------------------------------------------------------------------------- */

struct burst {
	struct request enter[BURST], exec[BURST];
	int stage[BURST], well;
};

static const struct request *next_of_burst(void *arg, int i, struct client *c)
{
	struct burst *s = arg;
	char id[64], path[128], out[16];

	switch (s->stage[i]++) {
	case 0:
		return &s->enter[i];
	case 1:
		if (c->status >= 300)
			break;
		client_member(c, "id", id, sizeof(id));
		snprintf(path, sizeof(path), "/v1/sessions/%s/exec", id);
		s->exec[i] = request_new("POST", path, NULL, echo_text);
		return &s->exec[i];
	default:
		client_member(c, "stdout", out, sizeof(out));
		s->well += c->status == 200 && strcmp(out, "hi\\n") == 0;
		break;
	}
	if (c->status >= 300)
		put_note("burst: %d %.*s", c->status, (int)c->body_len, c->body);
	return NULL;
}

static void burst_round(const struct daemon *d, struct client *c, int round)
{
	struct burst *s = calloc(1, sizeof(*s));
	double t0;

	must(s ? 0 : -1, NULL, "memory");
	for (int i = 0; i < BURST; i++) {
		char body[64];

		snprintf(body, sizeof(body), "{\"key\":\"burst%d\"}", i);
		s->enter[i] = request_new("POST", "/v1/sessions", NULL, body);
	}
	t0 = now_us();
	for (int i = 0; i < BURST; i++)
		client_open(&c[i], d->port);
	client_drive(c, BURST, next_of_burst, s);
	put_sample("http_burst", "lodge", "us", round, now_us() - t0);
	put_sample("http_burst", "lodge", "percent", round, s->well * 100.0 / BURST);
	for (int i = 0; i < BURST; i++) {
		client_close(&c[i]);
		free(s->enter[i].text);
		free(s->exec[i].text);
	}
	free(s);
}

static void burst(const struct bench *b)
{
	struct client *c = calloc(BURST, sizeof(*c));
	int rounds = b->rounds < 3 ? b->rounds : 3;
	struct daemon d;

	must(c ? 0 : -1, NULL, "memory");
	for (int r = 0; r < rounds; r++) {
		fprintf(stderr, "lodge-bench: a burst over HTTP, round %d\n", r + 1);
		peer_ask(b, BWRAP, r, PEER_BURST);
		daemon_start(b, &d, "http", NULL);
		pause_us(500000);
		burst_round(&d, c, r);
		daemon_stop(&d);
	}
	free(c);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void latency(const struct bench *b)
{
	static const char *const pool[] = { "LODGE_POOL=8", NULL };
	static const char *const no_pool[] = { "LODGE_POOL=0", NULL };
	struct client *c = calloc(2, sizeof(*c));
	struct daemon plain, pooled;
	bool root = geteuid() == 0;

	must(c ? 0 : -1, NULL, "memory");
	daemon_start(b, &plain, "http", no_pool);
	client_open(&c[0], plain.port);
	if (root) {
		daemon_start(b, &pooled, "pool", pool);
		client_open(&c[1], pooled.port);
		pause_us(500000);
	}
	first_command(&c[0], "http_warm", 0, WARM, GAP_US);
	for (int r = 0; r < b->rounds; r++)
		latency_round(b, root ? &c[1] : NULL, &c[0], r);
	client_close(&c[0]);
	daemon_stop(&plain);
	if (root) {
		client_close(&c[1]);
		daemon_stop(&pooled);
	}
	free(c);
}

void http_run(const struct bench *b)
{
	latency(b);
	burst(b);
}

void http_sweep(const struct bench *b)
{
	static const char *const names[] = { "http", "pool", "load", "traffic", "standing" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		daemon_sweep(b, names[i]);
}
