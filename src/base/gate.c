/* SPDX-License-Identifier: Apache-2.0 */
#include "base/gate.h"

#include <errno.h>
#include <string.h>
#include <time.h>

void gate_init(struct gate *g, const struct gate_limits *limits)
{
	*g = (struct gate){ .limits = *limits };
	g->end = &g->first;
	pthread_mutex_init(&g->mutex, NULL);
}

void gate_fini(struct gate *g)
{
	pthread_mutex_destroy(&g->mutex);
}

static bool is_same_tenant(const struct gate_ticket *a, const struct gate_ticket *b)
{
	return strcmp(a->tenant, b->tenant) == 0;
}

static bool is_same_key(const struct gate_ticket *a, const struct gate_ticket *b)
{
	return strcmp(a->key, b->key) == 0 && is_same_tenant(a, b);
}

static bool fits(unsigned used, unsigned weight, unsigned limit)
{
	return !limit || used + weight <= limit;
}

/* Whether the limits of its own tenant and key let the ticket in. A ticket of the same key that
 * waits before it goes first, whatever their weights are. */
static bool may_enter(const struct gate *g, const struct gate_ticket *t)
{
	unsigned of_tenant = 0, of_key = 0;
	bool before = true;

	for (const struct gate_ticket *o = g->first; o; o = o->next) {
		before = before && o != t;
		if (!o->inside && !(before && is_same_key(o, t)))
			continue;
		if (!o->inside)
			return false;
		of_tenant += is_same_tenant(o, t) ? o->weight : 0;
		of_key += is_same_key(o, t) ? o->weight : 0;
	}
	return fits(of_tenant, t->weight, g->limits.per_tenant) &&
	       fits(of_key, t->weight, g->limits.per_key);
}

/* Lets in whom the limits allow, in the order of the queue. A ticket that only the total keeps out
 * also keeps out those behind it, so that small weights do not starve a large one. `changed`: the
 * ticket that joined or left; where only keys are limited no other key is affected. */
static void admit(struct gate *g, const struct gate_ticket *changed)
{
	bool keyed = !g->limits.total && !g->limits.per_tenant;

	for (struct gate_ticket *t = g->first; t; t = t->next) {
		if (t->inside || (keyed && !is_same_key(t, changed)))
			continue;
		if (!may_enter(g, t)) {
			if (keyed)
				return;
			continue;
		}
		if (!fits(g->inside, t->weight, g->limits.total))
			return;
		t->inside = true;
		g->inside += t->weight;
		pthread_cond_signal(&t->admitted);
	}
}

static unsigned count_queued(const struct gate *g, const struct gate_ticket *t)
{
	unsigned n = 0;

	for (const struct gate_ticket *o = g->first; o; o = o->next)
		n += is_same_key(o, t);
	return n;
}

static unsigned bounded(unsigned weight, unsigned limit)
{
	return limit && weight > limit ? limit : weight;
}

static void init_ticket(struct gate *g, struct gate_ticket *t, const struct gate_request *rq)
{
	const struct gate_limits *l = &g->limits;
	unsigned weight = rq->weight ? rq->weight : 1;
	pthread_condattr_t attr;

	weight = bounded(bounded(bounded(weight, l->total), l->per_tenant), l->per_key);
	*t = (struct gate_ticket){ .gate = g,
				   .tenant = rq->tenant ? rq->tenant : "",
				   .key = rq->key ? rq->key : "",
				   .weight = weight };
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->admitted, &attr);
	pthread_condattr_destroy(&attr);
}

bool gate_join(struct gate *g, struct gate_ticket *t, const struct gate_request *rq)
{
	bool ok;

	init_ticket(g, t, rq);
	pthread_mutex_lock(&g->mutex);
	ok = !rq->max_queued || count_queued(g, t) < rq->max_queued;
	if (ok) {
		*g->end = t;
		g->end = &t->next;
		admit(g, t);
	}
	pthread_mutex_unlock(&g->mutex);
	if (!ok) {
		pthread_cond_destroy(&t->admitted);
		t->gate = NULL;
	}
	return ok;
}

bool gate_wait(struct gate_ticket *t, int64_t until)
{
	struct timespec ts = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };
	pthread_mutex_t *m = &t->gate->mutex;
	bool inside;
	int r = 0;

	pthread_mutex_lock(m);
	while (!t->inside && r != ETIMEDOUT)
		r = until < 0 ? pthread_cond_wait(&t->admitted, m)
			      : pthread_cond_timedwait(&t->admitted, m, &ts);
	inside = t->inside;
	pthread_mutex_unlock(m);
	return inside;
}

bool gate_is_last(const struct gate_ticket *t)
{
	bool last = true;

	pthread_mutex_lock(&t->gate->mutex);
	for (const struct gate_ticket *o = t->next; last && o; o = o->next)
		last = !is_same_key(o, t);
	pthread_mutex_unlock(&t->gate->mutex);
	return last;
}

void gate_leave(struct gate_ticket *t)
{
	struct gate *g = t->gate;
	struct gate_ticket **p;

	if (!g)
		return;
	pthread_mutex_lock(&g->mutex);
	p = &g->first;
	while (*p != t)
		p = &(*p)->next;
	*p = t->next;
	if (g->end == &t->next)
		g->end = p;
	if (t->inside)
		g->inside -= t->weight;
	admit(g, t);
	pthread_mutex_unlock(&g->mutex);
	pthread_cond_destroy(&t->admitted);
	t->gate = NULL;
}

void gate_enter(struct gate *g, struct gate_ticket *t, const char *tenant, const char *key)
{
	(void)gate_join(g, t, &(struct gate_request){ .tenant = tenant, .key = key });
	(void)gate_wait(t, -1);
}
