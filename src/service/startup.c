/* SPDX-License-Identifier: Apache-2.0 */
/* Starts an engine whose store is open: the keeper, then adoption. A keeper that cannot be
 * started now may be in a moment, so failures are retried with growing pauses, and soon while a
 * caller waits. */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "engine/internal.h"
#include "engine/start_progress.h"
#include "engine/keeper_conn.h"
#include "service/startup.h"
#include "service/startup_adopt.h"
#include "service/timers.h"

enum {
	PAUSE_MIN_MS = 250, /* also between two tries that callers requested */
	PAUSE_MAX_MS = 30 * 1000,
	ADOPT_TRIES = 5, /* what the keeper has no part in ends it, then */
};

/* One that answers: it may have to wait for its predecessor to go. */
static int start_keeper(struct engine *e, struct err *err)
{
	struct keeper_client *k;
	unsigned features;
	int r;

	startup_report(e, STARTUP_KEEPER, NULL);
	k = keeper_conn_lock(e, err);
	if (!k)
		return -1;
	r = keeper_client_features(k, &features, err);
	keeper_conn_unlock(e);
	return r;
}

static int start_once(struct engine *e, enum startup_stage *at, struct err *err)
{
	*at = STARTUP_KEEPER;
	if (start_keeper(e, err) < 0) {
		startup_report(e, STARTUP_KEEPER, err);
		return -1;
	}
	*at = STARTUP_ADOPT;
	startup_report(e, STARTUP_ADOPT, NULL);
	if (startup_adopt(e, err) < 0 || (!e->opts.no_threads && timers_start(e, err) < 0)) {
		startup_report(e, STARTUP_ADOPT, err);
		return -1;
	}
	startup_report(e, STARTUP_READY, NULL);
	return 0;
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

static void set_result(struct engine *e, bool ready, const struct err *err)
{
	pthread_mutex_lock(&e->mutex);
	e->startup.ready = ready;
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

	set_result(e, r == 0, err);
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
		set_result(e, r == 0, &err);
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

int engine_wait_ready(struct engine *e, int64_t wait_ms, struct err *err)
{
	struct timespec ts = clock_deadline(CLOCK_MONOTONIC, wait_ms);
	bool ready, failed, full;
	unsigned tries;

	pthread_mutex_lock(&e->mutex);
	tries = e->startup.tries;
	full = e->startup.nwaiting >= e->opts.queue_max;
	e->startup.nwaiting++;
	e->startup.requested = true;
	pthread_cond_broadcast(&e->startup.changed);
	while (!full && !e->startup.ready && !e->startup.stopping && e->startup.tries == tries)
		if (pthread_cond_timedwait(&e->startup.changed, &e->mutex, &ts) == ETIMEDOUT)
			break;
	e->startup.nwaiting--;
	ready = e->startup.ready;
	failed = full || e->startup.stopping || e->startup.tries != tries;
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
