/* SPDX-License-Identifier: Apache-2.0 */
/* A new sandbox needs capacity: the session that is idle longest is hibernated, then callers
 * queue, then they are refused.
 *
 * A caller joins the queue before it evicts a session, so that freed capacity goes to the first
 * in the queue, whichever caller freed it. Every caller tries to evict once when it joins, and
 * the head of the queue tries again from time to time: there is no notification when a sandbox
 * becomes idle. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/host_memory.h"
#include "base/test_hook.h"
#include "base/vec.h"
#include "machine/machine.h"
#include "session/capacity.h"
#include "session/reconcile.h"

enum {
	EVICT_MS = 200, /* how often the head of the queue looks for an idle session */
	WAIT_MAX_MS = 3600 * 1000,
	RETRY_MIN_MS = 1000,
	RETRY_MAX_MS = 30 * 1000,
	/* By default: most sandboxes use far less than their limit (512 MiB), but not nothing. */
	BYTES_EACH = 64 << 20,
	DEFAULT_MIN = 4,
	DEFAULT_MAX = 4096,
};

struct capacity_waiter {
	struct capacity_waiter *next;
	int64_t until; /* clock_mono_ms() */
	int64_t evict_at; /* of the next eviction, once it is the head; 0: none was tried yet */
};

/* ---- whom to evict ---------------------------------------------------------------------------
 */

struct candidate {
	char id[STORE_ID];
	bool paused;
	int64_t last_activity_at;
};

struct candidates {
	struct candidate *items;
	size_t count;
};

/* With engine.mutex or the session's lock. A machine that lost its connection occupies capacity
 * for nothing. */
static bool may_evict(const struct session *n)
{
	return n->machine && n->rec.state == SESSION_ACTIVE &&
	       (machine_is_gone(n->machine) || machine_count_users(n->machine) == 0);
}

static void add_candidate(struct session *n, void *arg)
{
	struct candidates *l = arg;
	struct candidate *c;

	if (n->locked || !may_evict(n))
		return;
	c = vec_push(&l->items, &l->count, SIZE_MAX);
	if (!c)
		return;
	c->paused = n->rec.paused;
	c->last_activity_at = n->rec.last_activity_at;
	memcpy(c->id, n->id, sizeof(c->id));
}

/* A paused session keeps its memory on request, so it is evicted last. */
static int by_idleness(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->paused != y->paused)
		return x->paused ? 1 : -1;
	return (x->last_activity_at > y->last_activity_at) -
	       (x->last_activity_at < y->last_activity_at);
}

/* Everything may be different since the list was made. */
static bool evict(struct engine *e, const char *id)
{
	static const struct session_cause_opts why = {
		.cause = SESSION_CAUSE_CAPACITY,
		.text = "hibernated to make room for another session",
		.actor = "lodge"
	};
	auto_call(session_unlock) struct session *n = NULL;
	struct err ignored;

	if (!session_trylock(e, id, &n) || !may_evict(n))
		return false;
	if (machine_is_gone(n->machine))
		return reconcile_session(n, &ignored) == 0 && !n->machine;
	if (session_is_working(n))
		return false;
	hook_crash("capacity:evict");
	return hibernate_session(n, &why, &ignored) == 0;
}

/* True: capacity was freed. */
static bool evict_one(struct engine *e)
{
	struct candidates l = { 0 };
	bool freed = false;

	session_each(e, add_candidate, &l);
	if (l.count > 1)
		qsort(l.items, l.count, sizeof(*l.items), by_idleness);
	for (size_t i = 0; i < l.count && !freed; i++)
		freed = evict(e, l.items[i].id);
	free(l.items);
	return freed;
}

/* ---- the queue; all with engine.mutex -------------------------------------------------------- */

static void join_queue(struct engine *e, struct capacity_waiter *w)
{
	struct capacity_waiter **p = &e->capacity.queue;

	while (*p)
		p = &(*p)->next;
	*p = w;
	e->capacity.nwaiting++;
}

static void leave_queue(struct engine *e, struct capacity_waiter *w)
{
	struct capacity_waiter **p = &e->capacity.queue;

	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
	e->capacity.nwaiting--;
	pthread_cond_broadcast(&e->capacity.changed);
}

static unsigned position(const struct engine *e, const struct capacity_waiter *w)
{
	unsigned n = 1;

	for (const struct capacity_waiter *p = e->capacity.queue; p != w; p = p->next)
		n++;
	return n;
}

/* Whether what is free, or about to be, is enough for all up to this one. */
static bool is_enough_coming(const struct engine *e, const struct capacity_waiter *w)
{
	unsigned max = e->opts.max_active;
	unsigned coming =
		(e->capacity.active < max ? max - e->capacity.active : 0) + e->capacity.evicting;

	return coming >= position(e, w);
}

static void try_evict(struct engine *e, struct capacity_waiter *w)
{
	bool freed;

	e->capacity.evicting++;
	pthread_mutex_unlock(&e->mutex);
	freed = evict_one(e);
	pthread_mutex_lock(&e->mutex);
	e->capacity.evicting--;
	/* another caller may get what was freed: then this one evicts again */
	w->evict_at = freed ? 0 : clock_mono_ms() + EVICT_MS;
	pthread_cond_broadcast(&e->capacity.changed);
}

static void wait_change(struct engine *e, const struct capacity_waiter *w)
{
	int64_t now = clock_mono_ms(), until = w->until;

	if (e->capacity.queue == w && w->evict_at < until)
		until = w->evict_at;
	if (until <= now) /* another caller frees capacity for it */
		until = now + EVICT_MS;
	(void)cond_wait_until(&e->capacity.changed, &e->mutex, until);
}

/* 0 when served, else the position in which it gave up. */
static unsigned wait_in_queue(struct engine *e, struct capacity_waiter *w)
{
	for (;;) {
		bool provided = is_enough_coming(e, w);
		int64_t now = clock_mono_ms();

		if (e->capacity.queue == w && e->capacity.active < e->opts.max_active)
			return 0;
		if (!provided && (!w->evict_at || (e->capacity.queue == w && now >= w->evict_at)))
			try_evict(e, w);
		else if (!provided && now >= w->until)
			return position(e, w);
		else
			wait_change(e, w);
	}
}

static int refuse_full(struct engine *e, unsigned at, unsigned of, struct err *err)
{
	struct capacity_report f;

	capacity_get_report(e, &f);
	err_set(err, ERR_UNAVAILABLE,
		"all %u sandboxes are in use; try again in %lld s (position %u of %u)", f.max,
		(long long)(f.retry_after_ms + 999) / 1000, at, of);
	err->sys = EAGAIN;
	return -1;
}

/* With engine.mutex. 0, the position in which it gave up, or -1: its tenant has no place. */
static int queue_up(struct engine *e, struct capacity_waiter *w, unsigned *ret_of, struct err *err)
{
	auto_fini(tenant_load_release_all) struct tenant_share share = { 0 };
	unsigned at;

	if (!e->capacity.queue && e->capacity.active < e->opts.max_active)
		return 0;
	*ret_of = e->capacity.nwaiting + 1;
	if (e->capacity.nwaiting >= e->opts.queue_max)
		return (int)*ret_of;
	if (tenant_load_queue(e, TENANT_QUEUE_CAPACITY, &share, err) < 0)
		return -1;
	join_queue(e, w);
	at = wait_in_queue(e, w);
	*ret_of = e->capacity.nwaiting;
	leave_queue(e, w);
	return (int)at;
}

int capacity_acquire(struct engine *e, int64_t wait_ms, struct err *err)
{
	struct capacity_waiter w = { 0 };
	unsigned of = 0;
	int at;

	if (wait_ms < 0 || wait_ms > WAIT_MAX_MS)
		wait_ms = wait_ms < 0 ? 0 : WAIT_MAX_MS;
	w.until = clock_mono_ms() + wait_ms;
	pthread_mutex_lock(&e->mutex);
	at = queue_up(e, &w, &of, err);
	if (!at)
		e->capacity.active++;
	pthread_mutex_unlock(&e->mutex);
	return at > 0 ? refuse_full(e, (unsigned)at, of, err) : at;
}

void capacity_force_acquire(struct engine *e)
{
	MUTEX_GUARD(&e->mutex);
	e->capacity.active++;
}

void capacity_release(struct engine *e)
{
	MUTEX_GUARD(&e->mutex);
	e->capacity.active--;
	pthread_cond_broadcast(&e->capacity.changed);
}

/* ---- default --------------------------------------------------------------------------------- */

unsigned capacity_default(void)
{
	uint64_t n = host_memory_total() / BYTES_EACH;

	return n < DEFAULT_MIN ? DEFAULT_MIN : n > DEFAULT_MAX ? DEFAULT_MAX : (unsigned)n;
}

/* ---- report ---------------------------------------------------------------------------------- */

struct idle_summary {
	unsigned idle;
	int64_t end; /* of the lifetime that ends first; 0: none */
};

static void count_idle(struct session *n, void *arg)
{
	struct idle_summary *s = arg;
	int64_t end = n->rec.expires_at;

	if (!n->machine)
		return;
	s->idle += may_evict(n);
	if (end && (!s->end || end < s->end))
		s->end = end;
}

void capacity_get_report(struct engine *e, struct capacity_report *ret)
{
	struct idle_summary s = { 0 };
	int64_t wait = RETRY_MAX_MS;

	session_each(e, count_idle, &s);
	if (s.end)
		wait = s.end - engine_now(e);
	if (s.idle || wait < RETRY_MIN_MS)
		wait = RETRY_MIN_MS;
	else if (wait > RETRY_MAX_MS)
		wait = RETRY_MAX_MS;
	MUTEX_GUARD(&e->mutex);
	*ret = (struct capacity_report){ .active = e->capacity.active,
					 .max = e->opts.max_active == ENGINE_UNLIMITED
							? 0
							: e->opts.max_active,
					 .waiting = e->capacity.nwaiting,
					 .idle = s.idle,
					 .retry_after_ms = wait };
}

void capacity_release_session(struct session *n)
{
	if (n->has_capacity)
		capacity_release(n->engine);
	n->has_capacity = false;
}
