/* SPDX-License-Identifier: Apache-2.0 */
/* What sandboxes use: measured for readers, and counted per tenant. Nothing here takes a session
 * lock or writes a record. */
#ifndef LODGE_SESSION_USAGE_H
#define LODGE_SESSION_USAGE_H

#include "engine/engine.h"

struct session;

/* A measurement is used again for a second, so that many readers cost as much as one, and for five
 * in the sums of a page that does not show its session. */
enum { USAGE_FRESH_MS = 1000, USAGE_SUMS_MS = 5000 };

struct usage_sample {
	char sandbox[STORE_ID]; /* of which it is */
	struct keeper_stats stats;
	int64_t at; /* engine_now(); 0: none yet */
	int64_t at_us; /* clock_mono_us() */
	int64_t cpu_milli; /* thousandths of one core since the measurement before; -1: unknown */
};

/* How much of what a sandbox used is in the counters of its tenant. */
struct usage_meter {
	char sandbox[STORE_ID];
	uint64_t cpu_us, oom_kills;
};

/* The sandbox of the record was just started: all it uses counts. One that an earlier engine
 * started counts from its first measurement on. */
void usage_start(struct session *n);
/* Adds to the counters of the tenant what the sandbox used since the last call. */
void usage_count(struct session *n, const struct keeper_stats *used);
/* Leaves the guest's processes in s->pids and s->pids_peak, as its limit counts them. */
void usage_subtract_own(struct engine *e, const char *session, struct keeper_stats *s);
struct usage_request {
	const char *session;
	/* its sandbox, and its last sample (at = 0: none); left alone unless it is measured */
	struct usage_sample *sample;
	bool measured; /* false: the sandbox has ended, or the keeper fails */
};
/* Keeps the results for the next reader. */
void usage_measure(struct engine *e, struct usage_request *items, size_t n);
/* Measures all running sandboxes for the tenant metrics. Not again within a second, nor within 20
 * times what it takes: readers cannot keep the store and the keeper busy. */
void usage_refresh_tenants(struct engine *e);

#endif
