/* SPDX-License-Identifier: Apache-2.0 */
#include "session/usage.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "machine/machine.h"
#include "sandbox/keeper_stats.h"
#include "session/session.h"

enum {
	SHARE_MIN_US = 100 * 1000, /* between two samples for a CPU share */
	SHARE_MAX_US = 5 * 60 * 1000 * 1000,
	REST_MIN_MS = 1000, /* between two measurements for the tenant metrics */
	REST_FACTOR = 20,
};

/* ---- one sandbox ----------------------------------------------------------------------------- */

void usage_start(struct session *n)
{
	MUTEX_GUARD(&n->engine->mutex);
	n->meter = (struct usage_meter){ 0 };
	memcpy(n->meter.sandbox, n->rec.sandbox, sizeof(n->meter.sandbox));
}

/* With engine.mutex. */
static void count(struct session *n, const struct keeper_stats *used)
{
	struct usage_meter *m = &n->meter;
	struct tenant_metrics_row *r = tenant_metrics_row(n->engine, n->rec.tenant);

	if (strcmp(m->sandbox, n->rec.sandbox) == 0) {
		r->cpu_us += used->cpu_us > m->cpu_us ? used->cpu_us - m->cpu_us : 0;
		r->oom_kills += used->oom_kills > m->oom_kills ? used->oom_kills - m->oom_kills : 0;
	}
	memcpy(m->sandbox, n->rec.sandbox, sizeof(m->sandbox));
	m->cpu_us = used->cpu_us;
	m->oom_kills = used->oom_kills;
}

void usage_count(struct session *n, const struct keeper_stats *used)
{
	MUTEX_GUARD(&n->engine->mutex);
	count(n, used);
}

static uint64_t subtract(uint64_t pids, uint64_t own)
{
	return pids > own ? pids - own : 0;
}

/* A spare shell becomes the next command, so it is lodge's only while nothing runs. */
void usage_subtract_own(struct engine *e, const char *session, struct keeper_stats *s)
{
	auto_call(machine_unref) struct machine *v = session_find_machine(e, session);
	uint64_t own = v && machine_count_users(v) ? 1 : LIMITS_OWN_PIDS;

	s->pids = subtract(s->pids, own);
	if (s->pids_peak != UINT64_MAX)
		s->pids_peak = subtract(s->pids_peak, 1);
}

static void keep_sample(struct session *n, void *arg)
{
	const struct usage_sample *s = arg;

	if (strcmp(n->rec.sandbox, s->sandbox) != 0)
		return;
	n->sample = *s;
	count(n, &s->stats);
}

static int64_t cpu_share(const struct usage_sample *before, const struct usage_sample *now)
{
	int64_t us = now->at_us - before->at_us;

	if (!before->at || us < SHARE_MIN_US || us > SHARE_MAX_US ||
	    now->stats.cpu_us < before->stats.cpu_us)
		return -1;
	return (int64_t)(now->stats.cpu_us - before->stats.cpu_us) * 1000 / us;
}

static void take_result(struct engine *e, struct usage_request *u,
			const struct keeper_measurement *m, struct usage_sample now)
{
	u->measured = m->known;
	if (!m->known)
		return;
	memcpy(now.sandbox, u->sample->sandbox, sizeof(now.sandbox));
	now.stats = m->stats;
	usage_subtract_own(e, u->session, &now.stats);
	now.cpu_milli = cpu_share(u->sample, &now);
	*u->sample = now;
	session_with(e, u->session, keep_sample, u->sample);
}

static int measure_batch(struct engine *e, struct usage_request *items, size_t n)
{
	struct keeper_measurement m[KEEPER_STATS_BATCH] = { 0 };
	struct usage_sample now = { .at = engine_now(e), .at_us = clock_mono_us() };
	struct err ignored;

	for (size_t i = 0; i < n; i++)
		m[i].sandbox = items[i].sample->sandbox;
	if (KEEPER_CALL(e, &ignored, keeper_stats_read, m, n, &ignored) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		take_result(e, &items[i], &m[i], now);
	return 0;
}

void usage_measure(struct engine *e, struct usage_request *items, size_t n)
{
	size_t some = KEEPER_STATS_BATCH;

	for (size_t i = 0; i < n; i++)
		items[i].measured = false;
	for (size_t at = 0; at < n; at += some)
		if (measure_batch(e, items + at, n - at < some ? n - at : some) < 0)
			return;
}

/* ---- all, by tenant -------------------------------------------------------------------------- */

struct running {
	struct running_item {
		char id[STORE_ID], tenant[STORE_NAME];
		struct usage_sample sample; /* at = 0: none */
		uint64_t memory_limit_bytes;
	} * items;
	size_t count;
};

static void add_running(struct session *n, void *arg)
{
	struct running *l = arg;
	struct running_item *r;

	if (n->rec.runtime != SESSION_RUNTIME_LIVE || !*n->rec.sandbox)
		return;
	r = vec_push(&l->items, &l->count, SIZE_MAX);
	if (!r)
		return;
	memcpy(r->id, n->id, sizeof(r->id));
	memcpy(r->tenant, n->rec.tenant, sizeof(r->tenant));
	r->memory_limit_bytes = (uint64_t)n->rec.memory_bytes;
	if (strcmp(n->sample.sandbox, n->rec.sandbox) == 0)
		r->sample = n->sample;
	memcpy(r->sample.sandbox, n->rec.sandbox, sizeof(r->sample.sandbox));
}

/* One that cannot be measured keeps its last sample. */
static void measure_running(struct engine *e, struct running *l)
{
	enum keeper_patience was = keeper_conn_set_patience(KEEPER_BRIEF);
	auto_free struct usage_request *due = NULL;
	size_t n = 0;

	session_each(e, add_running, l);
	due = calloc(l->count ? l->count : 1, sizeof(*due));
	for (size_t i = 0; due && i < l->count; i++)
		if (engine_now(e) - l->items[i].sample.at >= USAGE_FRESH_MS)
			due[n++] = (struct usage_request){ .session = l->items[i].id,
							   .sample = &l->items[i].sample };
	usage_measure(e, due, n);
	(void)keeper_conn_set_patience(was);
}

/* With engine.mutex. */
static void put_running(struct engine *e, const struct running *l)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct running_item *r = &l->items[i];
		struct tenant_gauges *g = &tenant_metrics_row(e, r->tenant)->now;

		g->memory_bytes += r->sample.stats.memory_bytes;
		g->memory_limit_bytes += r->memory_limit_bytes;
		if (r->sample.stats.disk_bytes != UINT64_MAX)
			g->disk_bytes += r->sample.stats.disk_bytes;
	}
}

static void put_gauges(struct engine *e, const struct running *l,
		       const struct store_tenant_sum_list *sessions,
		       const struct store_tenant_sum_list *layers)
{
	struct tenant_metrics *m = &e->tenants;

	MUTEX_GUARD(&e->mutex);
	for (size_t i = 0; i <= TENANT_METRICS_MAX; i++)
		m->rows[i].now = (struct tenant_gauges){ 0 };
	for (size_t i = 0; i < sessions->count; i++) {
		const struct store_tenant_sum *s = &sessions->items[i];

		if (s->state < SESSION_STATES)
			tenant_metrics_row(e, s->tenant)->now.sessions[s->state] +=
				(uint64_t)s->sum;
	}
	for (size_t i = 0; i < layers->count; i++)
		tenant_metrics_row(e, layers->items[i].tenant)->now.disk_bytes +=
			(uint64_t)layers->items[i].sum;
	put_running(e, l);
}

static void measure_tenants(struct engine *e)
{
	auto_fini(store_tenant_sum_list_fini) struct store_tenant_sum_list sessions = { 0 };
	auto_fini(store_tenant_sum_list_fini) struct store_tenant_sum_list layers = { 0 };
	struct running l = { 0 };
	struct err ignored;

	measure_running(e, &l);
	if (STORE_CALL(e, store_tenant_sessions, &sessions, &ignored) == 0 &&
	    STORE_CALL(e, store_tenant_layers, SESSION_LIVE_STATES, &layers, &ignored) == 0)
		put_gauges(e, &l, &sessions, &layers);
	free(l.items);
}

static bool begin_measuring(struct tenant_metrics *m, pthread_mutex_t *mutex)
{
	bool begin;

	MUTEX_GUARD(mutex);
	begin = !m->measuring && clock_mono_ms() >= m->next_at;
	if (begin)
		m->measuring = true;
	return begin;
}

void usage_refresh_tenants(struct engine *e)
{
	int64_t began = clock_mono_ms(), rest;

	if (!begin_measuring(&e->tenants, &e->mutex))
		return;
	measure_tenants(e);
	rest = (clock_mono_ms() - began) * REST_FACTOR;
	MUTEX_GUARD(&e->mutex);
	e->tenants.next_at = clock_mono_ms() + (rest > REST_MIN_MS ? rest : REST_MIN_MS);
	e->tenants.measuring = false;
}
