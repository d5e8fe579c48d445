/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-bench measures and prints one line per sample; tests/bench/run makes a table of them.
 *
 *   sample NAME ROUND VALUE    one measurement; microseconds, or runs per second for rate/...
 *   value NAME VALUE           a figure that is taken once
 *   note TEXT                  what a reader of the table must know
 */
#ifndef LODGE_TESTS_BENCH_H
#define LODGE_TESTS_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct keeper_client;

/* Waits between two samples, so that the work of one does not disturb the next. */
enum { GAP_US = 3000 };
/* The same after a rest, because the kernel has fast paths for operations in quick succession. */
enum { REST_US = 150000, RESTED_SHARE = 4 };

struct bench {
	int rounds, n; /* samples per contender and round */
	int rate_ms; /* length of one throughput run */
	bool big; /* 5,000 sandboxes too */
	bool sweep; /* measure nothing, end what an interrupted run left */
	const char *only; /* NULL, or the one part to run */
	const char *bundle, *state; /* of the OCI runtimes; NULL: leave them out */
	const char *home, *lodge, *lodged, *tiny;
	struct keeper_client *keeper;
	char trash[128]; /* where the keeper has what it still has to remove */
	int peer; /* socket of the process that runs the other contenders */
};

/* ---- main.c: what is measured goes out here ------------------------------------------------- */
double now_us(void);
void pause_us(unsigned us);
void put_sample(const char *what, const char *caller, const char *part, int round, double value);
void put_value(const char *name, double value);
void put_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Ends the program, because the results would be incomplete. */
void must(int r, const struct err *err, const char *what);

/* ---- peer.c: everything that is a plain process --------------------------------------------- */
enum contender { BARE_BASH, BARE_TINY, BWRAP, CRUN, RUNC, LODGE_RUN, CONTENDERS };
const char *contender_name(enum contender caller);
/* In this process. */
void peer_latency(const struct bench *b, enum contender caller, int round);
void peer_rested(const struct bench *b, enum contender caller, int round);
void peer_rate(const struct bench *b, enum contender caller, int round, int in_flight);
void peer_http(const struct bench *b, enum contender caller, int round); /* beside lodged's rows */
void peer_burst(const struct bench *b, enum contender caller, int round);
/* In a child with its own mount namespace, where crun finds cgroups it supports. */
int peer_start(struct bench *b, struct err *err);
bool peer_has(const struct bench *b, enum contender caller);
/* Otherwise the number in flight. */
enum { PEER_LATENCY = 0, PEER_RESTED = -1, PEER_HTTP = -2, PEER_BURST = -3 };
void peer_ask(const struct bench *b, enum contender caller, int round, int in_flight);

/* ---- the engine's rows ---------------------------------------------------------------------- */
void engine_cold(const struct bench *b, int round);
void engine_live(const struct bench *b, int round);
void engine_rested(const struct bench *b, int round);
void bench_pool(const struct bench *b, int round);
void engine_destroy(const struct bench *b, int round);
/* Create to first output, n times, as sample WHAT/lodge/out. */
void engine_create(const struct bench *b, const char *what, int round, int n, unsigned gap);
/* Waits until the keeper has removed everything it should destroy. */
void engine_settle(const struct bench *b);
int rested_n(const struct bench *b); /* samples of that kind */

void rate_lodge(const struct bench *b, int round, int in_flight);
void density_run(const struct bench *b);
void output_run(const struct bench *b);
/* A gigabyte that a shell writes, through a pipe: sample WHAT/cat/us. */
void output_pipe(const char *text, const char *what, int round);
void session_run(const struct bench *b);

/* ---- lodged's rows: over HTTP --------------------------------------------------------------- */
void http_run(const struct bench *b);
void load_run(const struct bench *b);
void traffic_run(const struct bench *b);
void standing_run(const struct bench *b);
void http_sweep(const struct bench *b);

#endif
