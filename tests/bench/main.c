/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-bench: see bench.h. Started by tests/bench/run, which makes the bundle and the table. */
#include "bench.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "proc.h"
#include "sandbox/keeper_client.h"
#include "tiny.h"

double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

void pause_us(unsigned us)
{
	if (us)
		usleep(us);
}

void put_sample(const char *what, const char *caller, const char *part, int round, double value)
{
	printf("sample %s/%s/%s %d %.1f\n", what, caller, part, round, value);
}

void put_value(const char *name, double value)
{
	printf("value %s %.1f\n", name, value);
	fflush(stdout);
}

void put_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("note ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	fflush(stdout);
}

void must(int r, const struct err *err, const char *what)
{
	if (r >= 0)
		return;
	fflush(stdout);
	fprintf(stderr, "lodge-bench: %s: %s\n", what, err ? err->msg : "failed");
	exit(1);
}

/* ---- the parts ------------------------------------------------------------------------------ */

/* Every contender runs once per round, so that a slow phase of the machine affects all of them. */
static void latency_round(const struct bench *b, int round)
{
	static const enum contender peers[] = { BARE_BASH, BARE_TINY, BWRAP, CRUN, RUNC };

	fprintf(stderr, "lodge-bench: latency, round %d of %d\n", round + 1, b->rounds);
	for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
		peer_ask(b, peers[i], round, PEER_LATENCY);
		pause_us(50000);
	}
	engine_cold(b, round);
	engine_settle(b);
	engine_live(b, round);
	engine_settle(b);
	bench_pool(b, round);
	engine_settle(b);
	engine_destroy(b, round);
	engine_settle(b);
	peer_latency(b, LODGE_RUN, round);
	for (size_t i = 0; i < ARRAY_LEN(peers); i++)
		if (peers[i] != BARE_TINY)
			peer_ask(b, peers[i], round, PEER_RESTED);
	engine_rested(b, round);
	peer_rested(b, LODGE_RUN, round);
	engine_settle(b);
}

static void rate_round(const struct bench *b, int round, int in_flight)
{
	static const enum contender peers[] = { BARE_BASH, BWRAP, CRUN, RUNC };

	fprintf(stderr, "lodge-bench: throughput, %d in flight, round %d\n", in_flight, round + 1);
	for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
		peer_ask(b, peers[i], round, in_flight);
		pause_us(200000);
	}
	rate_lodge(b, round, in_flight);
	peer_rate(b, LODGE_RUN, round, in_flight);
	pause_us(200000);
}

static bool wants(const struct bench *b, const char *part)
{
	return !b->only || strcmp(b->only, part) == 0;
}

static const struct part {
	const char *name, *title;
	void (*run)(const struct bench *b);
} parts[] = {
	{ "output", "output", output_run },
	{ "sessions", "sessions", session_run },
	{ "http", "over HTTP", http_run },
	{ "load", "load over HTTP", load_run },
	{ "traffic", "bytes over HTTP", traffic_run },
	{ "standing", "an idle lodged", standing_run },
	{ "memory", "idle sandboxes", density_run },
};

static void run_all(const struct bench *b)
{
	static const int in_flight[] = { 1, 2, 8, 32 };
	int rate_rounds = b->rounds < 3 ? b->rounds : 3;

	/* a new home: one-time setup happens now, so that it is in no median */
	engine_create(b, "first", 0, 1, 0);
	for (int r = 0; wants(b, "latency") && r < b->rounds; r++)
		latency_round(b, r);
	for (int r = 0; wants(b, "rate") && r < rate_rounds; r++)
		for (size_t i = 0; i < ARRAY_LEN(in_flight); i++)
			rate_round(b, r, in_flight[i]);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (wants(b, parts[i].name)) {
			fprintf(stderr, "lodge-bench: %s\n", parts[i].title);
			parts[i].run(b);
		}
}

/* ---- start ---------------------------------------------------------------------------------- */

static int open_keeper(struct bench *b, struct err *err)
{
	struct keeper_client_opts opts = { .program = getenv("LODGE_KEEPER"), .home = b->home };
	unsigned features;
	char run[96];

	if (keeper_client_spawn(&opts, &b->keeper, err) < 0 ||
	    keeper_client_features(b->keeper, &features, err) < 0)
		return -1;
	if (!(features & KEEPER_HAS_CGROUP))
		put_note("lodge has no cgroup limits here");
	if (!proc_run_dir(b->home, run, sizeof(run)))
		return err_set(err, ERR_NOT_FOUND, "the keeper's directory of %s", b->home);
	snprintf(b->trash, sizeof(b->trash), "%s/d/trash", run);
	return 0;
}

/* Ends the sandboxes of an earlier run with this home, because they outlive their engine. */
static void destroy_named(void *arg, const char *name)
{
	struct bench *b = arg;
	struct keeper_request r = keeper_client_request(KEEPER_DESTROY, name);
	struct err err;

	if (keeper_client_call(b->keeper, &r, NULL, 0, NULL, NULL, &err) < 0)
		fprintf(stderr, "lodge-bench: %s\n", err.msg);
}

static bool parse(int argc, char **argv, struct bench *b)
{
	static const struct option options[] = { { "rounds", required_argument, NULL, 'r' },
						 { "n", required_argument, NULL, 'n' },
						 { "rate-ms", required_argument, NULL, 'm' },
						 { "big", no_argument, NULL, 'b' },
						 { "only", required_argument, NULL, 'o' },
						 { "bundle", required_argument, NULL, 'u' },
						 { "state", required_argument, NULL, 's' },
						 { "home", required_argument, NULL, 'h' },
						 { "lodge", required_argument, NULL, 'l' },
						 { "lodged", required_argument, NULL, 'd' },
						 { "tiny", required_argument, NULL, 't' },
						 { "sweep", no_argument, NULL, 'w' },
						 { NULL, 0, NULL, 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'r':
			b->rounds = atoi(optarg);
			break;
		case 'n':
			b->n = atoi(optarg);
			break;
		case 'm':
			b->rate_ms = atoi(optarg);
			break;
		case 'b':
			b->big = true;
			break;
		case 'o':
			b->only = optarg;
			break;
		case 'u':
			b->bundle = optarg;
			break;
		case 's':
			b->state = optarg;
			break;
		case 'h':
			b->home = optarg;
			break;
		case 'l':
			b->lodge = optarg;
			break;
		case 'd':
			b->lodged = optarg;
			break;
		case 't':
			b->tiny = optarg;
			break;
		case 'w':
			b->sweep = true;
			break;
		default:
			return false;
		}
	}
	return b->home && b->lodge && b->lodged && b->tiny && b->rounds > 0 && b->n > 0 &&
	       optind == argc;
}

int main(int argc, char **argv)
{
	struct bench b = { .rounds = 7, .n = 20, .rate_ms = 1500, .peer = -1 };
	struct err err;

	if (!parse(argc, argv, &b)) {
		fprintf(stderr, "lodge-bench: started by tests/bench/run\n");
		return 2;
	}
	umask(022);
	must(tiny_write(b.tiny, &err), &err, "tiny");
	must(peer_start(&b, &err), &err, "peer"); /* before there is anything to inherit */
	must(open_keeper(&b, &err), &err, "keeper");
	if (b.sweep) {
		proc_each_sandbox(b.home, destroy_named, &b);
		http_sweep(&b);
	} else {
		run_all(&b);
	}
	close(b.peer);
	keeper_client_free(b.keeper);
	return 0;
}
