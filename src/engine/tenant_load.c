/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tenant_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "engine/internal.h"

enum { QUEUE_PART = 2 }; /* of the places of a queue */

struct tenant_usage {
	struct tenant_usage *next; /* with the same hash */
	uint64_t used[TENANT_RESOURCES];
	unsigned shares;
	char tenant[];
};

static _Thread_local const char *caller;

void tenant_load_init(struct tenant_load *l, const struct engine_opts *o)
{
	uint64_t places = (o->queue_max + QUEUE_PART - 1) / QUEUE_PART;

	pthread_mutex_init(&l->mutex, NULL);
	l->max[TENANT_REQUESTS] = o->tenant_requests;
	l->max[TENANT_STREAMS] = o->tenant_streams;
	l->max[TENANT_BODIES] = o->tenant_body_bytes;
	l->max[TENANT_QUEUE_CAPACITY] = places;
	l->max[TENANT_QUEUE_KEEPER] = places;
	l->max[TENANT_QUEUE_START] = places;
}

void tenant_load_fini(struct tenant_load *l)
{
	pthread_mutex_destroy(&l->mutex);
}

/* ---- tenants; all with the mutex ------------------------------------------------------------- */

static struct tenant_usage **find_usage(struct tenant_load *l, const char *tenant)
{
	struct tenant_usage **p;
	unsigned hash = 0;

	for (const char *c = tenant; *c; c++)
		hash = hash * 31 + (unsigned char)*c;
	p = &l->tenants[hash % TENANT_LOAD_BUCKETS];
	while (*p && strcmp((*p)->tenant, tenant) != 0)
		p = &(*p)->next;
	return p;
}

/* NULL: out of memory. */
static struct tenant_usage *get_usage(struct tenant_load *l, const char *tenant)
{
	struct tenant_usage **p = find_usage(l, tenant);
	size_t len = strlen(tenant) + 1;

	if (!*p) {
		*p = calloc(1, sizeof(**p) + len);
		if (*p)
			memcpy((*p)->tenant, tenant, len);
	}
	return *p;
}

static void drop_unused(struct tenant_load *l, struct tenant_usage *u)
{
	struct tenant_usage **p;

	if (u->shares)
		return;
	p = find_usage(l, u->tenant);
	*p = u->next;
	free(u);
}

/* ---- shares ---------------------------------------------------------------------------------- */

static int refuse(const char *tenant, enum tenant_resource what, uint64_t max, struct err *err)
{
	static const struct {
		const char *what, *more;
	} texts[] = {
		[TENANT_REQUESTS] = { "requests in flight for", "(setting: tenant_concurrent)" },
		[TENANT_STREAMS] = { "open streams for", "(setting: tenant_streams)" },
		[TENANT_BODIES] = { "of request bodies for", "(setting: tenant_body)" },
		[TENANT_QUEUE_CAPACITY] = { "requests of",
					    "wait for a sandbox (half of setting queue_max)" },
		[TENANT_QUEUE_KEEPER] = { "requests of",
					  "wait for lodge-keeper (half of setting queue_max)" },
		[TENANT_QUEUE_START] = { "requests of",
					 "wait for the start (half of setting queue_max)" },
	};
	char number[SIZE_TEXT];

	snprintf(number, sizeof(number), "%llu", (unsigned long long)max);
	err_set(err, ERR_LIMIT, "more than %s %s tenant %.64s %s",
		what == TENANT_BODIES ? units_format(max, number) : number, texts[what].what,
		tenant, texts[what].more);
	err->sys = EUSERS;
	return -1;
}

int tenant_load_take(struct engine *e, const char *tenant, enum tenant_resource what,
		     uint64_t amount, struct tenant_share *s, struct err *err)
{
	struct tenant_load *l = &e->load;
	struct tenant_usage *u;

	MUTEX_GUARD(&l->mutex);
	u = s->usage ? s->usage : get_usage(l, tenant);
	if (!u)
		return err_sys(err, ENOMEM, "tenant");
	if (l->max[what] && u->used[what] + amount > l->max[what]) {
		drop_unused(l, u);
		return refuse(tenant, what, l->max[what], err);
	}
	u->shares += !s->usage;
	u->used[what] += amount;
	s->engine = e;
	s->usage = u;
	s->taken[what] += amount;
	return 0;
}

void tenant_load_release(struct tenant_share *s, enum tenant_resource what)
{
	if (!s->usage)
		return;
	MUTEX_GUARD(&s->engine->load.mutex);
	s->usage->used[what] -= s->taken[what];
	s->taken[what] = 0;
}

void tenant_load_release_all(struct tenant_share *s)
{
	struct tenant_load *l;

	if (!s->usage)
		return;
	l = &s->engine->load;
	MUTEX_GUARD(&l->mutex);
	for (size_t i = 0; i < TENANT_RESOURCES; i++)
		s->usage->used[i] -= s->taken[i];
	s->usage->shares--;
	drop_unused(l, s->usage);
	*s = (struct tenant_share){ 0 };
}

/* ---- queues ---------------------------------------------------------------------------------- */

const char *tenant_load_set_caller(const char *tenant)
{
	const char *was = caller;

	caller = tenant;
	return was;
}

int tenant_load_queue(struct engine *e, enum tenant_resource what, struct tenant_share *s,
		      struct err *err)
{
	return caller ? tenant_load_take(e, caller, what, 1, s, err) : 0;
}
