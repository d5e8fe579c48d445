/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics per tenant. Counters start at 0 with the engine. The first TENANT_METRICS_MAX tenants
 * have a row each for as long as the engine runs; all others share one row, so that what is
 * reported stays bounded. */
#ifndef LODGE_ENGINE_TENANT_METRICS_H
#define LODGE_ENGINE_TENANT_METRICS_H

#include "engine/session_state.h"

struct engine;

enum { TENANT_METRICS_MAX = 100 };

struct tenant_metrics_row {
	char tenant[STORE_NAME]; /* "": the tenants without a row of their own */
	/* counters */
	uint64_t deaths[SESSION_DEATHS]; /* sandboxes that ended; see session_death_name() */
	uint64_t cpu_us, oom_kills;
	/* as they were last measured */
	struct tenant_gauges {
		uint64_t sessions[SESSION_STATES];
		uint64_t memory_bytes, memory_limit_bytes; /* of running sandboxes */
		uint64_t disk_bytes; /* of running sandboxes and sealed files */
	} now;
};

struct tenant_metrics { /* engine.mutex */
	struct tenant_metrics_row rows[TENANT_METRICS_MAX + 1]; /* the last: all others */
	unsigned count; /* of tenants with a row */
	bool others; /* there are others */
	bool measuring; /* a thread does */
	int64_t next_at; /* clock_mono_ms(): not measured before */
};

/* The row of a tenant, a new one if there is room. With engine.mutex. */
struct tenant_metrics_row *tenant_metrics_row(struct engine *e, const char *tenant);
void tenant_metrics_count_death(struct engine *e, const char *tenant, unsigned code);
/* Copies the rows in use and returns their number; the row of all others is the last, if there are
 * any. */
unsigned tenant_metrics_copy(struct engine *e,
			     struct tenant_metrics_row ret[static TENANT_METRICS_MAX + 1]);
/* Adds a row to another one. */
void tenant_metrics_add(struct tenant_metrics_row *sum, const struct tenant_metrics_row *r);

#endif
