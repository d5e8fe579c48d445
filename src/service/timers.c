/* SPDX-License-Identifier: Apache-2.0 */
/* Timers. Deadlines are in the store, and only this file enforces them, so deadlines that passed
 * while no engine ran need no special care. Each session is checked with its lock and nothing
 * else held; a locked one is left for the next round. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/test_hook.h"
#include "base/units.h"
#include "base/vec.h"
#include "template/environment.h"
#include "engine/internal.h"
#include "engine/keeper_conn.h"
#include "engine/scratch.h"
#include "layers/layers.h"
#include "machine/exec_output_file.h"
#include "machine/exec_record.h"
#include "machine/machine.h"
#include "machine/machine_watch.h"
#include "service/timers.h"
#include "session/change.h"
#include "session/destroy.h"
#include "session/flatten.h"
#include "session/hibernate.h"
#include "session/probe.h"
#include "session/reconcile.h"
#include "session/session.h"

enum {
	PAGE = 64, /* sessions per question to the store */
	ROUND_MS = 1000,
	RETRY_MIN_MS = 5000, /* how long one that failed waits; longer the longer it fails */
	RETRY_MAX_MS = 5 * 60 * 1000,
	FAILED_MS = 60 * 1000, /* how long a failed session with a running sandbox stays failed */
	PRUNE_MS = 10 * 60 * 1000,
	COLLECT_MS = 30 * 1000,
	DAY_MS = 24 * 3600 * 1000,
};

enum timer_result {
	TIMER_LEFT, /* still due, perhaps later */
	TIMER_DONE, /* no longer due */
	TIMER_CHANGED, /* nor that, and it is in another state or gone */
	TIMER_FAILED,
};

/* ---- one session, with its lock -------------------------------------------------------------- */

/* One that does not work must neither keep the others waiting nor be tried all the time. */
static void postpone(struct session *n, int64_t now)
{
	int64_t since = n->rec.state == SESSION_ACTIVE ? session_due_at(&n->rec) : n->rec.cause.at;
	int64_t wait = since ? (now - since) / 2 : 0;

	wait = wait < RETRY_MIN_MS ? RETRY_MIN_MS : wait;
	n->retry_at = now + (wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS);
	if (n->rec.state == SESSION_ACTIVE && n->rec.expires_at > now &&
	    n->rec.expires_at < n->retry_at)
		n->retry_at = n->rec.expires_at; /* the end of a life is never put off */
	if (n->loaded)
		session_set_due(n, n->retry_at);
}

static enum timer_result end_session(struct session *n, bool expired)
{
	const struct store_session *s = &n->rec;
	uint8_t how = expired ? s->on_expire : s->on_idle;
	char text[STORE_TEXT];
	struct session_cause_opts why = { expired ? SESSION_CAUSE_EXPIRED : SESSION_CAUSE_IDLE,
					  text, "lodge" };
	struct err ignored = { 0 };

	if (expired)
		snprintf(text, sizeof(text), "lifetime of %lld s is over",
			 (long long)(s->expires_at - s->started_at) / 1000);
	else
		snprintf(text, sizeof(text), "idle for %lld s",
			 (long long)s->idle_timeout_ms / 1000);
	return (how == SESSION_END_DESTROY ? destroy_session : hibernate_session)(n, &why,
										  &ignored) < 0
		       ? TIMER_FAILED
		       : TIMER_CHANGED;
}

/* Its files were kept as long as delete_after says. */
static enum timer_result end_retention(struct session *n)
{
	char text[STORE_TEXT], kept[SIZE_TEXT];
	struct session_cause_opts why = { SESSION_CAUSE_RETENTION, text, "lodge" };
	struct err ignored = { 0 };

	snprintf(text, sizeof(text), "hibernated for %s (delete_after)",
		 units_format_ms((uint64_t)n->rec.delete_after_ms, kept));
	return destroy_session(n, &why, &ignored) < 0 ? TIMER_FAILED : TIMER_CHANGED;
}

/* One without a sandbox whose time has come. */
static enum timer_result check_resting(struct session *n, int64_t now)
{
	int64_t delete_at = session_delete_at(&n->rec);

	if (delete_at && delete_at <= now)
		return end_retention(n);
	if (n->rec.on_idle == SESSION_END_DESTROY && session_is_at_rest(&n->rec))
		return end_session(n, false);
	session_set_due(n, delete_at);
	return TIMER_DONE;
}

/* Of two deadlines that were missed the first one counts. */
static enum timer_result check_active(struct session *n, int64_t now)
{
	int64_t idle = n->rec.hibernate_at, expiry = n->rec.expires_at;
	bool is_idle = idle && idle <= now;
	bool is_over = !session_is_active(&n->rec, now);
	bool idle_first = is_idle && (!is_over || idle < expiry - SESSION_EXPIRY_BUFFER_MS);
	struct err ignored;

	if (idle_first && machine_count_users(n->machine) == 0 && !session_is_working(n))
		return end_session(n, false);
	if (is_over) {
		/* an exec may use the last seconds, but no more */
		if (now < expiry && machine_count_users(n->machine) > 0)
			return TIMER_LEFT;
		return end_session(n, true);
	}
	if (!is_idle) { /* it was put off, and used since */
		session_set_due(n, session_due_at(&n->rec));
		return TIMER_DONE;
	}
	session_touch(n);
	return session_flush(n, &ignored) < 0 ? TIMER_FAILED : TIMER_DONE;
}

/* Afterwards its sandbox is connected, or it is no longer ACTIVE. */
static int reconcile_machine(struct session *n)
{
	struct err ignored;

	if (!n->machine || machine_is_gone(n->machine))
		return reconcile_session(n, &ignored);
	if (n->rec.state == SESSION_FAILED)
		return session_revive(n, &ignored);
	return n->rec.state == SESSION_ACTIVE ? 0 : reconcile_session(n, &ignored);
}

static enum timer_result check_session(struct session *n, int64_t now)
{
	uint8_t state = n->rec.state;

	/* an expired sandbox is ended even if it cannot be connected to */
	if (state == SESSION_ACTIVE && !n->machine && n->rec.expires_at && n->rec.expires_at <= now)
		return end_session(n, true);
	if (reconcile_machine(n) < 0)
		return TIMER_FAILED;
	if (!n->loaded) /* destroyed */
		return TIMER_CHANGED;
	if (n->rec.state == SESSION_ACTIVE && n->machine && n->rec.due_at && n->rec.due_at <= now)
		return check_active(n, now);
	if (n->rec.state != state)
		return TIMER_CHANGED;
	return n->rec.due_at && n->rec.due_at <= now ? check_resting(n, now) : TIMER_DONE;
}

/* The store may be older than the session in memory. */
static enum timer_result check_due(struct engine *e, const char *id, int64_t now)
{
	auto_call(session_unlock) struct session *n = NULL;
	struct err ignored;
	enum timer_result how;

	if (!session_trylock(e, id, &n) || now < n->retry_at)
		return TIMER_LEFT;
	if (session_flush(n, &ignored) < 0)
		return TIMER_LEFT;
	if (!n->rec.due_at || n->rec.due_at > now)
		return TIMER_DONE;
	how = check_session(n, now);
	if (how == TIMER_FAILED)
		postpone(n, now);
	else
		n->retry_at = 0;
	return how;
}

/* ---- due sessions ---------------------------------------------------------------------------- */

struct names {
	char (*ids)[STORE_ID];
	size_t count;
};

static bool add_name(struct names *l, const char *id)
{
	char(*added)[STORE_ID] = vec_push(&l->ids, &l->count, SIZE_MAX);

	return added && memcpy(added, id, STORE_ID);
}

static bool has_name(const struct names *l, const char *id)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->ids[i], id) == 0)
			return true;
	return false;
}

/* False: all of them were checked in this round already. */
static bool sweep_page(struct engine *e, int64_t now, struct names *seen, unsigned *left,
		       int *changed)
{
	auto_fini(store_session_list_fini) struct store_session_list l = { 0 };
	unsigned limit = PAGE + *left < STORE_PAGE_MAX ? PAGE + *left : STORE_PAGE_MAX;
	struct err ignored;
	bool some = false;
	int r = -1;

	WITH_STORE(e, st)
	r = store_session_find_due(st, now, limit, &l, &ignored);
	for (size_t i = 0; r == 0 && i < l.count; i++) {
		enum timer_result how;

		if (has_name(seen, l.items[i].id))
			continue;
		if (!add_name(seen, l.items[i].id))
			break;
		some = true;
		how = check_due(e, l.items[i].id, now);
		*changed += how == TIMER_CHANGED;
		*left += how == TIMER_LEFT || how == TIMER_FAILED;
	}
	return some;
}

static int sweep_due(struct engine *e)
{
	struct names seen = { 0 };
	int64_t now = engine_now(e);
	unsigned left = 0;
	int changed = 0;

	while (sweep_page(e, now, &seen, &left, &changed))
		;
	free(seen.ids);
	return changed;
}

/* ---- sandboxes that do not respond ------------------------------------------------------------
 */

struct watched {
	struct watched_machine {
		struct machine *machine;
		bool paused;
		int64_t idle_at, expires_at;
	} * items;
	size_t count;
};

static void add_watched(struct session *n, void *arg)
{
	struct watched *l = arg;
	struct watched_machine *m = n->machine ? vec_push(&l->items, &l->count, SIZE_MAX) : NULL;

	if (m)
		*m = (struct watched_machine){ machine_ref(n->machine), n->rec.paused,
					       n->rec.hibernate_at, n->rec.expires_at };
}

static void watch_machines(struct engine *e)
{
	struct watched l = { 0 };

	session_each(e, add_watched, &l);
	for (size_t i = 0; i < l.count; i++) {
		const struct watched_machine *m = &l.items[i];

		machine_watch(m->machine, m->paused);
		if (!m->paused)
			machine_set_deadlines(m->machine, m->idle_at, m->expires_at);
		machine_unref(m->machine);
	}
	free(l.items);
}

/* ---- lost sandboxes -------------------------------------------------------------------------- */

struct lost {
	struct names names;
	int64_t now;
};

static bool is_lost(const struct session *n, int64_t now)
{
	if (now < n->retry_at)
		return false;
	if (!n->machine) /* the connection failed when the engine started */
		return n->has_capacity && n->rec.runtime == SESSION_RUNTIME_LIVE;
	return machine_is_gone(n->machine) ||
	       (n->rec.state == SESSION_FAILED && now >= n->rec.cause.at + FAILED_MS);
}

static void add_lost(struct session *n, void *arg)
{
	struct lost *l = arg;

	if (!n->locked && is_lost(n, l->now))
		(void)add_name(&l->names, n->id); /* else in the next round */
}

static int sweep_lost(struct engine *e)
{
	struct lost l = { .now = engine_now(e) };
	int changed = 0;

	session_each(e, add_lost, &l);
	for (size_t i = 0; i < l.names.count; i++) {
		auto_call(session_unlock) struct session *n = NULL;
		enum timer_result how;

		if (!session_trylock(e, l.names.ids[i], &n) || !is_lost(n, l.now))
			continue;
		hook_crash("sweep:lost");
		how = check_session(n, l.now);
		if (how == TIMER_FAILED && !n->machine)
			n->retry_at = l.now + FAILED_MS; /* its own deadlines stay what they are */
		else if (how == TIMER_FAILED)
			postpone(n, l.now);
		changed += how == TIMER_CHANGED;
	}
	free(l.names.ids);
	return changed;
}

/* ---- limits that the keeper may have changed late ---------------------------------------------
 */

static void add_unsure(struct session *n, void *arg)
{
	if (!n->locked && n->limits_unsure)
		(void)add_name(arg, n->id); /* else in the next round */
}

static void sweep_limits(struct engine *e)
{
	struct names l = { 0 };
	struct err ignored;

	session_each(e, add_unsure, &l);
	for (size_t i = 0; i < l.count; i++) {
		auto_call(session_unlock) struct session *n = NULL;

		if (session_trylock(e, l.ids[i], &n))
			(void)session_restore_limits(n, &ignored);
	}
	free(l.ids);
}

/* ---- retention ------------------------------------------------------------------------------- */

static bool is_time(struct engine *e, int64_t *last, int64_t every)
{
	int64_t now = engine_now(e);
	bool yes;

	pthread_mutex_lock(&e->mutex);
	yes = !*last || now - *last >= every;
	if (yes)
		*last = now;
	pthread_mutex_unlock(&e->mutex);
	return yes;
}

static void prune(struct engine *e)
{
	int64_t now = engine_now(e), execs = now - e->opts.execs_ms;
	struct err ignored;

	WITH_STORE(e, st)
	{
		(void)store_tombstone_prune(st, now - e->opts.tombstones_ms, &ignored);
		(void)store_ended_sandbox_prune(st, now - e->opts.tombstones_ms, &ignored);
		(void)store_event_prune(st, now - e->opts.events_ms, &ignored);
		(void)store_exec_prune(st, execs, &ignored);
		(void)store_once_prune(st, execs, &ignored);
		(void)store_trim(st, e->opts.execs_max, e->opts.rows_max, &ignored);
		(void)store_quota_prune(st, now - 2 * (int64_t)DAY_MS, &ignored);
		(void)store_reserve(st, true);
	}
	exec_output_prune(e, execs);
}

int timers_collect(struct engine *e)
{
	int removed = layers_collect(e);

	flatten_sessions(e);
	return removed;
}

/* Returns the previous value. */
static bool set_collecting(struct engine *e, bool on)
{
	bool was;

	pthread_mutex_lock(&e->mutex);
	was = e->timers.collecting;
	e->timers.collecting = on;
	pthread_mutex_unlock(&e->mutex);
	return was;
}

static void collect(struct engine *e, void *arg)
{
	(void)arg;
	(void)timers_collect(e);
	(void)set_collecting(e, false);
}

/* Copying layers takes its time, which no deadline waits for. */
static void start_collecting(struct engine *e)
{
	struct err ignored;

	if (!set_collecting(e, true) && engine_post(e, collect, NULL, &ignored) < 0)
		(void)set_collecting(e, false);
}

/* When there is space again, the reserve of the store is made anew: destroying may have used it. */
static void watch_disk(struct engine *e, bool keeper)
{
	struct disk_space d;

	(keeper ? disk_space_poll : disk_space_poll_host)(e);
	disk_space_get(e, &d);
	if (e->timers.disk_was_full && d.state == DISK_OK) {
		WITH_STORE(e, st)
		(void)store_reserve(st, true);
	}
	e->timers.disk_was_full = d.state != DISK_OK;
}

int engine_run_timers(struct engine *e)
{
	/* deadlines do not wait for the keeper */
	enum keeper_patience was = keeper_conn_set_patience(KEEPER_IMPATIENT);
	bool keeper = keeper_conn_revive(e);
	int changed = 0;

	watch_disk(e, keeper);
	watch_machines(e);
	if (keeper) {
		scratch_sweep(e);
		sweep_limits(e);
		changed = sweep_lost(e) + sweep_due(e);
	}
	exec_write_ended(e, false);
	environment_sweep(e);
	if (is_time(e, &e->timers.pruned_at, PRUNE_MS))
		prune(e);
	if (is_time(e, &e->timers.collected_at, COLLECT_MS))
		start_collecting(e);
	(void)keeper_conn_set_patience(was);
	return changed;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *timer_thread(void *arg)
{
	struct engine *e = arg;

	pthread_mutex_lock(&e->mutex);
	while (!e->timers.stopping) {
		struct timespec ts;
		int r = 0;

		pthread_mutex_unlock(&e->mutex);
		(void)engine_run_timers(e);
		pthread_mutex_lock(&e->mutex);
		ts = clock_deadline(CLOCK_MONOTONIC, ROUND_MS);
		while (!e->timers.wake_requested && !e->timers.stopping && r != ETIMEDOUT)
			r = pthread_cond_timedwait(&e->timers.wake, &e->mutex, &ts);
		e->timers.wake_requested = false;
	}
	pthread_mutex_unlock(&e->mutex);
	return NULL;
}

int timers_start(struct engine *e, struct err *err)
{
	int r = pthread_create(&e->timers.thread, NULL, timer_thread, e);

	if (r)
		return err_sys(err, r, "timer thread");
	e->timers.running = true;
	return 0;
}

void timers_stop(struct engine *e)
{
	if (!e->timers.running)
		return;
	pthread_mutex_lock(&e->mutex);
	e->timers.stopping = true;
	pthread_cond_signal(&e->timers.wake);
	pthread_mutex_unlock(&e->mutex);
	pthread_join(e->timers.thread, NULL);
	e->timers.running = false;
}
