/* SPDX-License-Identifier: Apache-2.0 */
/* Starts an engine whose store is open: the keeper, then adoption. A keeper that cannot be
 * started now may be in a moment, so failures are retried with growing pauses, and soon while a
 * caller waits. */
#include "service/startup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/vec.h"
#include "engine/disk_space.h"
#include "engine/internal.h"
#include "engine/keeper_conn.h"
#include "engine/keeper_listing.h"
#include "engine/start_progress.h"
#include "layers/layers_sync.h"
#include "project/switch_commit.h"
#include "service/timers.h"
#include "session/reconcile.h"
#include "session/session.h"
#include "snapshot/snapshot_archive.h"
#include "template/templates.h"

enum {
	PAUSE_MIN_MS = 250, /* also between two tries that callers requested */
	PAUSE_MAX_MS = 30 * 1000,
	ADOPT_TRIES = 5, /* what the keeper has no part in ends it, then */
};

/* ---- adoption --------------------------------------------------------------------------------
 * Running sandboxes are connected, unfinished work is finished or undone, and what no record names
 * is removed. */

struct names { /* of sandboxes that a record names */
	char (*ids)[STORE_ID];
	size_t count;
};

static int add_name(struct names *l, const char *id, struct err *err)
{
	char(*added)[STORE_ID] = *id ? vec_push(&l->ids, &l->count, SIZE_MAX) : NULL;

	if (!*id)
		return 0;
	if (!added)
		return err_sys(err, ENOMEM, "adoption");
	memcpy(added, id, STORE_ID);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The wall clock may have been set back while no engine ran: no deadline is later than the
 * session's own timeouts allow. */
static int bound_deadlines(struct session *n, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	int64_t now = engine_now(n->engine);

	if (n->rec.state != SESSION_ACTIVE ||
	    (n->rec.started_at <= now && n->rec.last_activity_at <= now))
		return 0;
	if (store_session_copy(&n->rec, &s, err) < 0)
		return -1;
	if (s.started_at > now) {
		s.expires_at -= s.expires_at ? s.started_at - now : 0;
		s.started_at = now;
	}
	s.last_activity_at = now;
	s.hibernate_at = 0;
	session_record_retime(&s, &n->rec, now);
	return session_update(n, &s, "clock", err);
}

/* A session that cannot be reconciled now is retried at its next use, and by the timers. */
static void adopt_one(struct engine *e, const char *id)
{
	auto_call(session_unlock) struct session *n = NULL;
	struct err later;

	if (session_lock(e, NULL, id, &n, &later) < 0)
		return;
	if (reconcile_session(n, &later) == 0)
		(void)bound_deadlines(n, &later);
}

/* Adds the ids, or the sandboxes, of all sessions in these states (0: any). */
static int add_names(struct engine *e, uint64_t states, bool sandboxes, struct names *to,
		     struct err *err)
{
	struct store_session_filter f = { .states = states };
	struct store_page page = { .limit = 200 };
	int r = 0;

	do {
		auto_fini(store_session_list_fini) struct store_session_list l = { 0 };

		WITH_STORE(e, st)
		r = store_session_list(st, &f, page, &l, err);
		for (size_t i = 0; r == 0 && i < l.count; i++)
			r = add_name(to, sandboxes ? l.items[i].sandbox : l.items[i].id, err);
		page.after = l.next;
	} while (r == 0 && page.after);
	return r;
}

/* A sandbox that no record names was never acknowledged, or is being destroyed. */
static int remove_strays(struct engine *e, struct err *err)
{
	struct names named = { 0 };
	struct keeper_listing l = { 0 };
	struct err later; /* one that cannot be removed now is a stray at the next start, too */
	int r = add_names(e, 0, true, &named, err);

	if (r == 0)
		r = keeper_listing_read_known(e, &l, err);
	/* A volume that failed on a full disk is mounted again when there is space. Until then the
	 * service must run, so that sessions can be deleted. Strays that run end now, files without
	 * a sandbox are for the next start. */
	if (r < 0 && (err->sys == EIO || err->sys == EROFS))
		r = 0;
	if (named.count > 1)
		qsort(named.ids, named.count, sizeof(*named.ids), by_name);
	for (size_t i = 0; r == 0 && i < l.count; i++) {
		if (l.items[i].what != KEEPER_IS_LAYER &&
		    (named.count == 0 ||
		     !bsearch(l.items[i].id, named.ids, named.count, sizeof(*named.ids), by_name)))
			(void)keeper_conn_destroy(e, l.items[i].id, &later);
	}
	keeper_listing_fini(&l);
	free(named.ids);
	return r;
}

static int startup_adopt(struct engine *e, struct err *err)
{
	uint64_t unfinished = SM_BIT(SESSION_PROVISIONING) | SM_BIT(SESSION_ACTIVE) |
			      SM_BIT(SESSION_HIBERNATING) | SM_BIT(SESSION_RESTORING) |
			      SM_BIT(SESSION_FAILED) | SM_BIT(SESSION_DESTROYING);
	struct names ids = { 0 };
	int r = add_names(e, unfinished, false, &ids, err);

	for (size_t i = 0; r == 0 && i < ids.count; i++)
		adopt_one(e, ids.ids[i]);
	free(ids.ids);
	if (r == 0)
		r = remove_strays(e, err);
	if (r == 0)
		r = templates_reconcile(e, err);
	if (r == 0)
		r = switch_recover(e, err);
	if (r == 0) {
		snapshot_clean_imports(e);
		layers_sync_all(e);
	}
	return r;
}

/* ---- start ----------------------------------------------------------------------------------- */

/* One that answers: it may have to wait for its predecessor to go. ERR_CONFLICT: another try would
 * fail too. */
static int start_keeper(struct engine *e, struct err *err)
{
	struct keeper_client *k;
	struct enforcement f;
	int r;

	startup_report(e, STARTUP_KEEPER, NULL);
	k = keeper_conn_lock(e, err);
	if (!k)
		return -1;
	r = keeper_client_enforcement(k, &f, err);
	keeper_conn_unlock(e);
	if (r < 0) {
		err->code = ERR_UNAVAILABLE;
		return -1;
	}
	if (e->opts.require_limits &&
	    enforcement_check(&f, KEEPER_STORE_DISK, KEEPER_DEMAND_CGROUP | KEEPER_DEMAND_DISK,
			      err) < 0)
		return err_ctx(err, "require_limits");
	return 0;
}

static int start_once(struct engine *e, enum startup_stage *at, struct err *err)
{
	enum keeper_patience was = keeper_conn_set_patience(
		KEEPER_IMPATIENT); /* its callers try again, or report it */
	int r;

	*at = STARTUP_KEEPER;
	r = start_keeper(e, err);
	if (r == 0) {
		*at = STARTUP_ADOPT;
		startup_report(e, STARTUP_ADOPT, NULL);
		r = startup_adopt(e, err);
		disk_space_poll(e);
	}
	if (r == 0 && !e->opts.no_threads)
		r = timers_start(e, err);
	(void)keeper_conn_set_patience(was);
	startup_report(e, r < 0 ? *at : STARTUP_READY, r < 0 ? err : NULL);
	return r;
}

void startup_report(struct engine *e, enum startup_stage stage, const struct err *failed)
{
	static const struct {
		const char *name, *text;
	} stages[] = {
		[STARTUP_STORE] = { "store", "opening the store" },
		[STARTUP_KEEPER] = { "keeper", "starting the keeper" },
		[STARTUP_ADOPT] = { "adopt", "adopting running sandboxes" },
		[STARTUP_READY] = { "ready", "ready" },
	};
	const char *status = failed ? "error" : stage == STARTUP_READY ? "ready" : "running";

	progress_report(e, NULL, status, stages[stage].name,
			failed ? failed->msg : stages[stage].text, stage, STARTUP_READY);
}

static void set_result(struct engine *e, bool ready, bool retrying, const struct err *err)
{
	pthread_mutex_lock(&e->mutex);
	e->startup.ready = ready;
	e->startup.retrying = retrying;
	e->startup.tries++;
	e->startup.requested = false;
	if (!ready)
		e->startup.last_error = *err;
	pthread_cond_broadcast(&e->startup.changed);
	pthread_mutex_unlock(&e->mutex);
}

int startup_run(struct engine *e, struct err *err)
{
	enum startup_stage at;
	int r = start_once(e, &at, err);

	set_result(e, r == 0, false, err);
	return r;
}

/* ---- thread ---------------------------------------------------------------------------------- */

/* Not all that wait for the same thing come back together. */
static int64_t jitter(int64_t ms)
{
	return ms * 3 / 4 + (int64_t)(clock_mono_us() % (uint64_t)(ms / 2));
}

/* False: the engine is being closed. */
static bool pause_start(struct engine *e, int64_t ms)
{
	struct timespec early = clock_deadline(CLOCK_MONOTONIC, PAUSE_MIN_MS);
	struct timespec late = clock_deadline(CLOCK_MONOTONIC, ms);
	bool ends;
	int r = 0;

	pthread_mutex_lock(&e->mutex);
	while (!e->startup.stopping && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&e->startup.changed, &e->mutex,
					   e->startup.requested ? &early : &late);
	ends = e->startup.stopping;
	pthread_mutex_unlock(&e->mutex);
	return !ends;
}

static bool may_pass(enum startup_stage at, unsigned tries, const struct err *err)
{
	if (at == STARTUP_KEEPER)
		return err->code != ERR_CONFLICT;
	if (err->sys == ENOSPC) /* space returns, sooner or later */
		return true;
	return tries < ADOPT_TRIES &&
	       (err->code == ERR_UNAVAILABLE || err->code == ERR_LIMIT || err->code == ERR_TIMEOUT);
}

static void *start_thread(void *arg)
{
	struct engine *e = arg;
	int64_t pause = PAUSE_MIN_MS, wait;
	unsigned adopts = 0;

	do {
		enum startup_stage at;
		struct err err;
		int r = start_once(e, &at, &err);

		adopts += at == STARTUP_ADOPT;
		wait = r < 0 && may_pass(at, adopts, &err) ? jitter(pause) : 0;
		pause = pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
		set_result(e, r == 0, wait > 0, &err);
		e->startup.fn(e->startup.arg, r < 0 ? &err : NULL, wait);
	} while (wait && pause_start(e, wait));
	return NULL;
}

int engine_start(struct engine *e, engine_ready_fn *fn, void *arg, struct err *err)
{
	int r;

	e->startup.fn = fn;
	e->startup.arg = arg;
	r = pthread_create(&e->startup.thread, NULL, start_thread, e);
	if (r)
		return err_sys(err, r, "startup thread");
	e->startup.has_thread = true;
	return 0;
}

void startup_stop(struct engine *e)
{
	if (!e->startup.has_thread)
		return;
	pthread_mutex_lock(&e->mutex);
	e->startup.stopping = true;
	pthread_cond_broadcast(&e->startup.changed);
	pthread_mutex_unlock(&e->mutex);
	pthread_join(e->startup.thread, NULL);
	e->startup.has_thread = false;
}

/* ---- waiting for it -------------------------------------------------------------------------- */

bool engine_is_ready(struct engine *e)
{
	return e->startup.ready;
}

static int fail_not_ready(struct engine *e, enum err_code code, struct err *err)
{
	struct progress_state p;
	struct err ignored;

	if (progress_get(e, NULL, &p, &ignored) < 0)
		err_set(err, code, "lodge is starting");
	else if (p.status == PROGRESS_ERROR)
		err_set(err, code, "lodge is starting and will retry (%s): %.150s", p.stage,
			p.error);
	else
		err_set(err, code, "lodge is starting (%s: %s)", p.stage, p.message);
	err->sys = EINPROGRESS;
	return -1;
}

/* With engine.mutex: the next try is made soon. */
static void request_try(struct engine *e)
{
	if (e->startup.requested)
		return;
	e->startup.requested = true;
	pthread_cond_broadcast(&e->startup.changed);
}

int engine_wait_ready(struct engine *e, int64_t wait_ms, struct err *err)
{
	auto_fini(tenant_load_release_all) struct tenant_share share = { 0 };
	struct timespec ts = clock_deadline(CLOCK_MONOTONIC, wait_ms);
	bool ready, failed, full;
	unsigned tries;

	if (tenant_load_queue(e, TENANT_QUEUE_START, &share, err) < 0)
		return engine_is_ready(e) ? 0 : fail_not_ready(e, ERR_UNAVAILABLE, err);
	pthread_mutex_lock(&e->mutex);
	tries = e->startup.tries;
	full = e->startup.nwaiting >= e->opts.queue_max;
	e->startup.nwaiting++;
	while (!full && !e->startup.ready && !e->startup.stopping &&
	       (e->startup.tries == tries || e->startup.retrying)) {
		request_try(e);
		if (pthread_cond_timedwait(&e->startup.changed, &e->mutex, &ts) == ETIMEDOUT)
			break;
	}
	e->startup.nwaiting--;
	ready = e->startup.ready;
	failed = full || e->startup.stopping || (e->startup.tries != tries && !e->startup.retrying);
	pthread_mutex_unlock(&e->mutex);
	return ready ? 0 : fail_not_ready(e, failed ? ERR_UNAVAILABLE : ERR_TIMEOUT, err);
}

unsigned engine_waiting(struct engine *e)
{
	unsigned n;

	pthread_mutex_lock(&e->mutex);
	n = e->startup.nwaiting;
	pthread_mutex_unlock(&e->mutex);
	return n;
}

bool engine_start_error(struct engine *e, struct err *ret, unsigned *ret_tries)
{
	pthread_mutex_lock(&e->mutex);
	*ret = e->startup.last_error;
	*ret_tries = e->startup.tries;
	pthread_mutex_unlock(&e->mutex);
	return ret->code != ERR_NONE;
}
