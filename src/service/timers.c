/* SPDX-License-Identifier: Apache-2.0 */
/* What happens by itself. Deadlines are in the store, and this is the only place that enforces
 * them: what fell due while no engine ran is found like everything else. Each session is looked at
 * with its turn and nothing else held; one that somebody works with is left for the next round. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/test_hook.h"
#include "base/vec.h"
#include "template/environment.h"
#include "engine/internal.h"
#include "engine/keeper_conn.h"
#include "engine/scratch.h"
#include "layers/layers.h"
#include "machine/exec_output_file.h"
#include "machine/exec_record.h"
#include "machine/machine.h"
#include "service/timers.h"
#include "session/destroy.h"
#include "session/flatten.h"
#include "session/hibernate.h"
#include "session/probe.h"
#include "session/reconcile.h"
#include "session/session.h"

enum {
	PAGE = 64, /* sessions per question to the store */
	ROUND_MS = 1000,
	AGAIN_MIN_MS = 5000, /* how long one that failed waits; longer the longer it fails */
	AGAIN_MAX_MS = 5 * 60 * 1000,
	FAILED_MS = 60 * 1000, /* how long a failed session with a live sandbox stays failed */
	PRUNE_MS = 10 * 60 * 1000,
	COLLECT_MS = 30 * 1000,
};

enum looked {
	LOOK_LEFT, /* still due, perhaps later */
	LOOK_DONE, /* it is not due any more */
	LOOK_CHANGED, /* nor that, and it is in another state or gone */
	LOOK_FAILED,
};

/* ---- one session, with its turn -------------------------------------------------------------- */

/* Written without an event: nothing happened. */
static void set_due(struct session *n, int64_t due)
{
	struct err ignored;

	pthread_mutex_lock(&n->engine->mutex);
	n->rec.due_at = due;
	n->dirty = true;
	pthread_mutex_unlock(&n->engine->mutex);
	(void)session_flush(n, &ignored); /* else again_at alone holds it back */
}

/* One that does not work must neither keep the others waiting nor be tried all the time. */
static void put_off(struct session *n, int64_t now)
{
	int64_t since = n->rec.state == SESSION_ACTIVE ? session_due_at(&n->rec) : n->rec.cause.at;
	int64_t wait = since ? (now - since) / 2 : 0;

	if (wait < AGAIN_MIN_MS)
		wait = AGAIN_MIN_MS;
	if (wait > AGAIN_MAX_MS)
		wait = AGAIN_MAX_MS;
	n->retry_at = now + wait;
	if (n->rec.state == SESSION_ACTIVE && n->rec.expires_at > now &&
	    n->rec.expires_at < n->retry_at)
		n->retry_at = n->rec.expires_at; /* the end of a life is never put off */
	if (n->loaded)
		set_due(n, n->retry_at);
}

static enum looked end(struct session *n, enum session_end how,
		       const struct session_cause_opts *why)
{
	struct err ignored;
	int r = how == SESSION_END_DESTROY ? destroy_session(n, why, &ignored)
					   : hibernate_session(n, why, &ignored);

	return r < 0 ? LOOK_FAILED : LOOK_CHANGED;
}

static enum looked end_expired(struct session *n)
{
	char text[STORE_TEXT];

	snprintf(text, sizeof(text), "maximum lifetime of %lld s reached",
		 (long long)n->rec.max_lifetime_ms / 1000);
	return end(n, (enum session_end)n->rec.on_expire,
		   &(struct session_cause_opts){ SESSION_CAUSE_EXPIRED, text, "lodge" });
}

static enum looked end_idle(struct session *n)
{
	char text[STORE_TEXT];

	snprintf(text, sizeof(text), "idle for %lld s", (long long)n->rec.idle_timeout_ms / 1000);
	return end(n, (enum session_end)n->rec.on_idle,
		   &(struct session_cause_opts){ SESSION_CAUSE_IDLE, text, "lodge" });
}

/* Of two deadlines that were missed the first one counts. */
static enum looked look_at_active(struct session *n, int64_t now)
{
	int64_t idle = n->rec.hibernate_at, expiry = n->rec.expires_at;
	bool is_idle = idle && idle <= now;
	bool is_over = !session_is_active(&n->rec, now);
	bool idle_first = is_idle && (!is_over || idle < expiry - SESSION_EXPIRY_BUFFER_MS);
	struct err ignored;

	if (idle_first && machine_count_users(n->machine) == 0 && !session_is_working(n))
		return end_idle(n);
	if (is_over) {
		/* a command may use the last seconds, and no more than those */
		if (now < expiry && machine_count_users(n->machine) > 0)
			return LOOK_LEFT;
		return end_expired(n);
	}
	if (!is_idle) { /* it was put off, and used since */
		set_due(n, session_due_at(&n->rec));
		return LOOK_DONE;
	}
	session_touch(n);
	return session_flush(n, &ignored) < 0 ? LOOK_FAILED : LOOK_DONE;
}

/* Its sandbox is connected afterwards, or it is not ACTIVE any more. */
static int bring_to_light(struct session *n)
{
	struct err ignored;

	if (!n->machine || machine_is_gone(n->machine))
		return reconcile_session(n, &ignored);
	if (n->rec.state == SESSION_FAILED)
		return session_revive(n, &ignored);
	return n->rec.state == SESSION_ACTIVE ? 0 : reconcile_session(n, &ignored);
}

static enum looked look_at(struct session *n, int64_t now)
{
	uint8_t state = n->rec.state;

	/* nobody has to be able to talk to what is over */
	if (state == SESSION_ACTIVE && !n->machine && n->rec.expires_at && n->rec.expires_at <= now)
		return end_expired(n);
	if (bring_to_light(n) < 0)
		return LOOK_FAILED;
	if (!n->loaded) /* destroyed */
		return LOOK_CHANGED;
	if (n->rec.state == SESSION_ACTIVE && n->machine && n->rec.due_at && n->rec.due_at <= now)
		return look_at_active(n, now);
	if (n->rec.state != state)
		return LOOK_CHANGED;
	if (n->rec.due_at && n->rec.due_at <= now) {
		if (n->rec.on_idle == SESSION_END_DESTROY && session_is_at_rest(&n->rec))
			return end_idle(n);
		set_due(n, 0);
	}
	return LOOK_DONE;
}

/* What the store says may be older than what the entry knows. */
static enum looked look_at_due(struct engine *e, const char *id, int64_t now)
{
	auto_call(session_unlock) struct session *n = NULL;
	struct err ignored;
	enum looked how;

	if (!session_trylock(e, id, &n) || now < n->retry_at)
		return LOOK_LEFT;
	if (session_flush(n, &ignored) < 0)
		return LOOK_LEFT;
	if (!n->rec.due_at || n->rec.due_at > now)
		return LOOK_DONE;
	how = look_at(n, now);
	if (how == LOOK_FAILED)
		put_off(n, now);
	else
		n->retry_at = 0;
	return how;
}

/* ---- what is due ----------------------------------------------------------------------------- */

struct names {
	char (*ids)[STORE_ID];
	size_t count;
};

static bool add_name(struct names *l, const char *id)
{
	char(*added)[STORE_ID] = vec_push(&l->ids, &l->count, SIZE_MAX);

	if (!added)
		return false;
	memcpy(added, id, STORE_ID);
	return true;
}

static bool has_name(const struct names *l, const char *id)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->ids[i], id) == 0)
			return true;
	return false;
}

/* False: nothing was there that had not been looked at in this round. */
static bool sweep_page(struct engine *e, int64_t now, struct names *seen, unsigned *left,
		       int *changed)
{
	struct store_session_list l = { 0 };
	unsigned limit = PAGE + *left < STORE_PAGE_MAX ? PAGE + *left : STORE_PAGE_MAX;
	struct err ignored;
	bool some = false;
	int r = -1;

	WITH_STORE(e, st)
	r = store_session_find_due(st, now, limit, &l, &ignored);
	for (size_t i = 0; r == 0 && i < l.count; i++) {
		enum looked how;

		if (has_name(seen, l.items[i].id))
			continue;
		if (!add_name(seen, l.items[i].id))
			break;
		some = true;
		how = look_at_due(e, l.items[i].id, now);
		*changed += how == LOOK_CHANGED;
		*left += how == LOOK_LEFT || how == LOOK_FAILED;
	}
	store_session_list_fini(&l);
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

/* ---- what died, or failed and lives ---------------------------------------------------------- */

struct lost {
	struct names names;
	int64_t now;
};

static bool is_lost(const struct session *n, int64_t now)
{
	if (now < n->retry_at)
		return false;
	if (!n->machine) /* nobody could connect to it when the engine started */
		return n->has_capacity && n->rec.runtime == SESSION_RUNTIME_LIVE;
	return machine_is_gone(n->machine) ||
	       (n->rec.state == SESSION_FAILED && now >= n->rec.cause.at + FAILED_MS);
}

static void note_lost(struct session *n, void *arg)
{
	struct lost *l = arg;

	if (!n->locked && is_lost(n, l->now))
		(void)add_name(&l->names, n->id); /* else in the next round */
}

static int sweep_lost(struct engine *e)
{
	struct lost l = { .now = engine_now(e) };
	int changed = 0;

	session_each(e, note_lost, &l);
	for (size_t i = 0; i < l.names.count; i++) {
		auto_call(session_unlock) struct session *n = NULL;
		enum looked how;

		if (!session_trylock(e, l.names.ids[i], &n) || !is_lost(n, l.now))
			continue;
		hook_crash("sweep:lost");
		how = look_at(n, l.now);
		if (how == LOOK_FAILED && !n->machine)
			n->retry_at = l.now + FAILED_MS; /* its own deadlines stay what they are */
		else if (how == LOOK_FAILED)
			put_off(n, l.now);
		changed += how == LOOK_CHANGED;
	}
	free(l.names.ids);
	return changed;
}

/* ---- what is too old ------------------------------------------------------------------------- */

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
		(void)store_event_prune(st, now - e->opts.events_ms, &ignored);
		(void)store_exec_prune(st, execs, &ignored);
		(void)store_once_prune(st, execs, &ignored);
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

static void collect(struct engine *e, void *arg)
{
	(void)arg;
	(void)timers_collect(e);
	pthread_mutex_lock(&e->mutex);
	e->timers.collecting = false;
	pthread_mutex_unlock(&e->mutex);
}

/* Copying layers takes its time, which no deadline waits for. */
static void start_collecting(struct engine *e)
{
	struct err ignored;
	bool start;

	pthread_mutex_lock(&e->mutex);
	start = !e->timers.collecting;
	e->timers.collecting = true;
	pthread_mutex_unlock(&e->mutex);
	if (!start || engine_post(e, collect, NULL, &ignored) == 0)
		return;
	pthread_mutex_lock(&e->mutex);
	e->timers.collecting = false;
	pthread_mutex_unlock(&e->mutex);
}

int engine_run_timers(struct engine *e)
{
	int changed;

	keeper_conn_revive(e);
	scratch_sweep(e);
	changed = sweep_lost(e) + sweep_due(e);

	exec_retry_writes(e);
	environment_sweep(e);
	if (is_time(e, &e->timers.pruned_at, PRUNE_MS))
		prune(e);
	if (is_time(e, &e->timers.collected_at, COLLECT_MS))
		start_collecting(e);
	return changed;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void sleep_a_round(struct engine *e)
{
	int64_t until = clock_mono_ms() + ROUND_MS;
	struct timespec ts = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };

	while (!e->timers.wake_requested && !e->timers.stopping)
		if (pthread_cond_timedwait(&e->timers.wake, &e->mutex, &ts) == ETIMEDOUT)
			break;
	e->timers.wake_requested = false;
}

static void *sweeper(void *arg)
{
	struct engine *e = arg;

	pthread_mutex_lock(&e->mutex);
	while (!e->timers.stopping) {
		pthread_mutex_unlock(&e->mutex);
		(void)engine_run_timers(e);
		pthread_mutex_lock(&e->mutex);
		sleep_a_round(e);
	}
	pthread_mutex_unlock(&e->mutex);
	return NULL;
}

int timers_start(struct engine *e, struct err *err)
{
	int r = pthread_create(&e->timers.thread, NULL, sweeper, e);

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
