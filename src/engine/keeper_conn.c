/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: started when needed and again after it died; used by one thread at a time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/layer_client.h"
#include "engine/internal.h"
#include "engine/keeper_listing.h"

enum {
	END_MS = 20000, /* for the processes of a sandbox to exit */
	JOB_MS = 3600 * 1000,
	EXIT_MS = 2000, /* for lodge-init to exit after its connection ended */
	WAIT_MIN_US = 200,
	WAIT_MAX_US = 50000,
	RETRY_US = 20000, /* of a caller, while the keeper fails */
	START_MIN_MS = 100, /* between two starts that fail */
	START_MAX_MS = 1000,
	/* programs and settings of the host, below a slot's files, may change meanwhile */
	POOL_AGE_MS = 3600 * 1000,
	/* The first answer of a keeper comes after its start, which waits for its predecessor to
	 * exit (10 s) and for a failed volume to be released (15 s), and makes or mounts the
	 * volume. */
	HELLO_MS = 120 * 1000,
	/* Parts of keeper_timeout_ms. It is for the slowest message that is not a job: create, seal
	 * and rename commit a transaction of the file system, which on a busy disk first writes
	 * what the sandboxes wrote, for seconds. The timers and workers repeat what failed. */
	IMPATIENT_PART = 3,
	BRIEF_MAX_MS = 1000,
	UNHEALTHY_MAX_MS = 5000,
};

struct keeper_pool keeper_conn_pool_opts(const struct engine *e)
{
	unsigned target = e->opts.pool, min = e->opts.pool_min;

	return (struct keeper_pool){ .min = min ? min : (target + 1) / 2,
				     .target = target,
				     .max = target,
				     .kept = 1,
				     .age_ms = POOL_AGE_MS };
}

/* Without a pool starts are slower but correct, so errors are ignored; the keeper counts them. */
static void set_pool(struct engine *e)
{
	struct err ignored;

	if (e->opts.pool)
		(void)keeper_client_pool(e->keeper.client, keeper_conn_pool_opts(e), NULL,
					 &ignored);
}

static void set_enforcement(struct engine *e, const struct enforcement *f)
{
	MUTEX_GUARD(&e->keeper.enforcement_mutex);
	e->keeper.enforcement = *f;
}

void keeper_conn_enforcement(struct engine *e, struct enforcement *ret)
{
	MUTEX_GUARD(&e->keeper.enforcement_mutex);
	*ret = e->keeper.enforcement;
}

/* Until it has answered: one that exits at once says why in its first reply. */
static int start_keeper(struct engine *e, struct keeper_client_wait wait, struct err *err)
{
	struct keeper_client_opts how = { .program = e->opts.keeper_program,
					  .home = e->home,
					  .start = e->opts.start_keeper,
					  .start_arg = e->opts.start_arg };
	auto_call(keeper_client_free) struct keeper_client *k = NULL;
	struct enforcement f;

	if (keeper_client_spawn(&how, &k, err) < 0)
		return -1;
	keeper_client_set_monitor(k, &e->keeper.owing_since);
	keeper_client_set_wait(k, (struct keeper_client_wait){ .silence_ms = HELLO_MS });
	if (keeper_client_enforcement(k, &f, err) < 0)
		return err->sys == KEEPER_FAILED ? -1 : err_ctx(err, "lodge-keeper");
	set_enforcement(e, &f);
	e->keeper.client = steal_ptr(&k);
	keeper_client_set_wait(e->keeper.client, wait);
	set_pool(e);
	return 0;
}

static _Thread_local enum keeper_patience patience;

enum keeper_patience keeper_conn_set_patience(enum keeper_patience now)
{
	enum keeper_patience was = patience;

	patience = now;
	return was;
}

static void set_error(struct engine *e, const struct err *err)
{
	MUTEX_GUARD(&e->mutex);
	e->keeper.last_error = *err;
}

static void postpone_start(struct keeper_conn *k, const struct err *err)
{
	k->start_error = *err;
	k->pause_ms = k->pause_ms ? k->pause_ms * 2 : START_MIN_MS;
	if (k->pause_ms > START_MAX_MS)
		k->pause_ms = START_MAX_MS;
	k->start_at = clock_mono_ms() + k->pause_ms;
}

static bool runs(const struct keeper_conn *k)
{
	return k->client && !keeper_client_is_dead(k->client);
}

/* All that wait for the same keeper do not start one each. */
static int ensure_started(struct engine *e, struct keeper_client_wait wait, struct err *err)
{
	struct keeper_conn *k = &e->keeper;

	if (runs(k))
		return 0;
	keeper_client_free(k->client);
	k->client = NULL;
	if (patience == KEEPER_PATIENT && clock_mono_ms() < k->start_at) {
		*err = k->start_error;
		return -1;
	}
	if (start_keeper(e, wait, err) == 0) {
		k->start_at = k->pause_ms = 0;
		return 0;
	}
	/* whatever failed, it is not the caller's fault */
	err->code = ERR_UNAVAILABLE;
	err->sys = KEEPER_FAILED;
	postpone_start(k, err);
	return -1;
}

/* ---- lock ------------------------------------------------------------------------------------ */

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* A caller who finds the keeper silent waits as for one that fails: it may go on in a moment. */
static struct keeper_client_wait get_wait(const struct engine *e)
{
	int64_t most = e->opts.keeper_timeout_ms;

	if (patience == KEEPER_PATIENT)
		return (struct keeper_client_wait){
			most, clock_mono_ms() + at_most(e->opts.keeper_wait_ms, most)
		};
	return (struct keeper_client_wait){
		patience == KEEPER_IMPATIENT ? most / IMPATIENT_PART
					     : at_most(BRIEF_MAX_MS, most / IMPATIENT_PART)
	};
}

/* Until when to wait for the other callers. Only the patient wait as long as the keeper answers. */
static int64_t get_end(const struct keeper_conn *k, int64_t began,
		       const struct keeper_client_wait *wait)
{
	int64_t since = k->owing_since, end;

	if (patience != KEEPER_PATIENT)
		return (since && since < began ? since : began) + wait->silence_ms;
	end = (since ? since : clock_mono_ms()) + wait->silence_ms;
	return end > wait->until ? end : wait->until;
}

static bool acquire(struct keeper_conn *k, const struct keeper_client_wait *wait)
{
	int64_t began = clock_mono_ms(), end;

	MUTEX_GUARD(&k->mutex);
	while (k->busy) {
		end = get_end(k, began, wait);
		if (clock_mono_ms() >= end)
			return false;
		(void)cond_wait_until(&k->released, &k->mutex, end);
	}
	k->busy = true;
	return true;
}

void keeper_conn_unlock(struct engine *e)
{
	MUTEX_GUARD(&e->keeper.mutex);
	e->keeper.busy = false;
	pthread_cond_signal(&e->keeper.released);
}

/* The lock was not free in time. */
static void set_silent(struct engine *e, struct err *err)
{
	char text[sizeof(err->msg)] = "lodge-keeper is busy with other calls; try again";
	int64_t silent_ms = keeper_conn_silent_ms(e);

	if (silent_ms >= BRIEF_MAX_MS)
		keeper_client_describe_silence(silent_ms, text, sizeof(text));
	err_set(err, ERR_UNAVAILABLE, "%s", text);
	err->sys = KEEPER_SILENT;
}

/* `start`: if none runs. */
static struct keeper_client *lock_client(struct engine *e, bool start, struct err *err)
{
	struct keeper_client_wait wait = get_wait(e);
	int r = -1;

	if (!acquire(&e->keeper, &wait)) {
		set_silent(e, err);
		return NULL;
	}
	if (start || runs(&e->keeper)) {
		r = ensure_started(e, wait, err);
	} else {
		err_set(err, ERR_UNAVAILABLE, "lodge-keeper is not running");
		err->sys = KEEPER_FAILED;
	}
	if (r == 0) {
		keeper_client_set_wait(e->keeper.client, wait);
		r = keeper_client_settle(e->keeper.client, err);
	}
	if (r == 0)
		return e->keeper.client;
	keeper_conn_unlock(e);
	return NULL;
}

struct keeper_client *keeper_conn_lock(struct engine *e, struct err *err)
{
	struct keeper_client *k = lock_client(e, true, err);

	if (!k && err->sys == KEEPER_FAILED)
		set_error(e, err);
	return k;
}

int64_t keeper_conn_silent_ms(struct engine *e)
{
	int64_t since = e->keeper.owing_since;

	return since ? clock_mono_ms() - since : 0;
}

int keeper_conn_check_answers(struct engine *e, struct err *err)
{
	struct err why;

	if (!e->keeper.owing_since)
		return 0;
	if (lock_client(e, false, &why)) {
		keeper_conn_unlock(e);
		return 0;
	}
	if (why.sys != KEEPER_SILENT)
		return 0; /* the step itself reports it, or starts another */
	*err = why;
	return -1;
}

/* ---- retry ----------------------------------------------------------------------------------- */

bool keeper_conn_may_retry(struct engine *e, struct keeper_retry *r, bool repeat,
			   const struct err *err)
{
	auto_fini(tenant_load_release_all) struct tenant_share share = { 0 };
	int64_t now = clock_mono_ms();
	struct err ignored; /* the keeper's is reported */
	bool waits;

	if (err->code != ERR_UNAVAILABLE || err->sys != KEEPER_FAILED)
		return false;
	if (r->sent)
		set_error(e, err);
	if (!r->until)
		r->until = now + e->opts.keeper_wait_ms;
	if (patience != KEEPER_PATIENT || (r->sent && !repeat) || now >= r->until ||
	    tenant_load_queue(e, TENANT_QUEUE_KEEPER, &share, &ignored) < 0)
		return false;
	waits = atomic_fetch_add(&e->keeper.nwaiting, 1) < e->opts.queue_max;
	if (waits)
		usleep(RETRY_US);
	atomic_fetch_sub(&e->keeper.nwaiting, 1);
	return waits;
}

/* ---- health ---------------------------------------------------------------------------------- */

static bool set_reviving(struct keeper_conn *k, bool on)
{
	bool was;

	MUTEX_GUARD(&k->mutex);
	was = k->reviving;
	k->reviving = on;
	return was;
}

static void start_again(struct engine *e, void *arg)
{
	struct err ignored; /* the next caller gets the error */

	(void)arg;
	if (keeper_conn_lock(e, &ignored))
		keeper_conn_unlock(e);
	(void)set_reviving(&e->keeper, false);
}

static int64_t unhealthy_ms(const struct engine *e)
{
	return at_most(UNHEALTHY_MAX_MS, e->opts.keeper_timeout_ms / IMPATIENT_PART);
}

/* True: it answered. */
static bool refresh_pool(struct engine *e, struct err *err)
{
	enum keeper_patience was = keeper_conn_set_patience(KEEPER_BRIEF);
	bool locked = lock_client(e, false, err);

	if (locked) {
		set_pool(e);
		keeper_conn_unlock(e);
	}
	(void)keeper_conn_set_patience(was);
	return locked;
}

bool keeper_conn_revive(struct engine *e)
{
	struct err err = { 0 };

	if (refresh_pool(e, &err))
		return true;
	if (err.sys == KEEPER_FAILED) {
		if (!set_reviving(&e->keeper, true) && engine_post(e, start_again, NULL, &err) < 0)
			(void)set_reviving(&e->keeper, false);
		return refresh_pool(e, &err);
	}
	return keeper_conn_silent_ms(e) < unhealthy_ms(e); /* else it only works for others */
}

bool keeper_conn_is_healthy(struct engine *e, char *ret, size_t size)
{
	struct keeper_conn *k = &e->keeper;
	int64_t silent_ms = keeper_conn_silent_ms(e);
	bool ok;

	if (silent_ms >= unhealthy_ms(e)) {
		keeper_client_describe_silence(silent_ms, ret, size);
		return false;
	}
	pthread_mutex_lock(&k->mutex);
	ok = k->busy || runs(k);
	pthread_mutex_unlock(&k->mutex);
	if (ok)
		return true;
	MUTEX_GUARD(&e->mutex);
	snprintf(ret, size, "%s",
		 k->last_error.code ? k->last_error.msg
				    : "the keeper exited; the next request starts a new one");
	return false;
}

static bool try_acquire(struct keeper_conn *k)
{
	MUTEX_GUARD(&k->mutex);
	if (k->busy)
		return false;
	k->busy = true;
	return true;
}

/* With a minimum of 0 the keeper reports its pool but does not refill it. */
static int query_pool(struct engine *e, struct keeper_pool_state *ret)
{
	struct keeper_pool same = keeper_conn_pool_opts(e);
	struct err ignored;
	int r = -1;

	if (!e->opts.pool || e->keeper.owing_since || !try_acquire(&e->keeper))
		return -1;
	same.min = 0;
	if (runs(&e->keeper)) {
		keeper_client_set_wait(e->keeper.client,
				       (struct keeper_client_wait){ BRIEF_MAX_MS });
		r = keeper_client_pool(e->keeper.client, same, ret, &ignored);
	}
	keeper_conn_unlock(e);
	return r;
}

void keeper_conn_pool(struct engine *e, struct keeper_pool_state *ret)
{
	struct keeper_pool_state now;
	int r = query_pool(e, &now);

	MUTEX_GUARD(&e->mutex);
	if (r == 0)
		e->keeper.pool = now;
	*ret = e->keeper.pool;
}

/* ---- calls ----------------------------------------------------------------------------------- */

int keeper_conn_call(struct engine *e, const struct keeper_request *req, struct keeper_reply *ret,
		     struct err *err)
{
	return KEEPER_CALL(e, err, keeper_client_call, req, NULL, 0, ret, NULL, err);
}

int keeper_conn_stats(struct engine *e, const char *sandbox, struct keeper_stats *ret,
		      struct err *err)
{
	struct keeper_request req = keeper_client_request(KEEPER_STATS, sandbox);
	struct keeper_reply reply;

	if (keeper_conn_call(e, &req, &reply, err) < 0)
		return -1;
	*ret = reply.stats;
	return 0;
}

int keeper_conn_stop(struct engine *e, const char *sandbox, struct err *err)
{
	return KEEPER_CALL(e, err, layer_stop, sandbox, NULL, err);
}

int keeper_conn_destroy(struct engine *e, const char *sandbox, struct err *err)
{
	struct keeper_request req = keeper_client_request(KEEPER_DESTROY, sandbox);

	return keeper_conn_call(e, &req, NULL, err);
}

/* Other threads use the keeper between two tries. False: the deadline has passed. */
static bool wait_before_retry(int64_t until, unsigned *us)
{
	if (clock_mono_ms() > until)
		return false;
	usleep(*us);
	*us = *us * 2 < WAIT_MAX_US ? *us * 2 : WAIT_MAX_US;
	return true;
}

int keeper_conn_seal(struct engine *e, const char *sandbox, const char *layer, bool *ret_whole,
		     struct err *err)
{
	int64_t until = clock_mono_ms() + END_MS;
	unsigned us = WAIT_MIN_US;
	int r;

	do
		r = KEEPER_CALL(e, err, layer_seal, sandbox, layer, ret_whole, err);
	while (r < 0 && err->sys == EBUSY && wait_before_retry(until, &us));
	return r;
}

/* The connection ends a moment before the process: its descriptors are closed first, then the
 * kernel kills the rest of its pid namespace. */
int keeper_conn_exit(struct engine *e, const char *sandbox, struct keeper_exit *ret,
		     struct err *err)
{
	struct keeper_request req = keeper_client_request(KEEPER_EXIT, sandbox);
	int64_t until = clock_mono_ms() + EXIT_MS;
	unsigned us = WAIT_MIN_US;
	struct keeper_reply reply;

	do {
		if (keeper_conn_call(e, &req, &reply, err) < 0)
			return -1;
	} while (reply.exit.state == KEEPER_EXIT_NONE && wait_before_retry(until, &us));
	*ret = reply.exit;
	return 0;
}

int keeper_conn_wait_job(struct engine *e, const char *name, uint64_t *ret_bytes, struct err *err)
{
	int64_t until = clock_mono_ms() + JOB_MS;
	unsigned us = WAIT_MIN_US;
	struct keeper_job job = { 0 };

	do {
		if (KEEPER_CALL(e, err, layer_job, name, &job, err) < 0)
			return -1;
	} while (job.state == KEEPER_JOB_RUNNING && wait_before_retry(until, &us));
	if (job.state != KEEPER_JOB_DONE)
		return err_set(err, ERR_UNAVAILABLE, "keeper job %s was interrupted", name);
	if (ret_bytes)
		*ret_bytes = job.bytes;
	return 0;
}

int keeper_conn_snapshot(struct engine *e, const char *sandbox, const char *layer, bool *ret_whole,
			 uint64_t *ret_bytes, struct err *err)
{
	struct keeper_job job = { 0 };

	if (KEEPER_CALL_ONCE(e, err, layer_snap, sandbox, layer, ret_whole, &job, err) < 0)
		return -1;
	if (job.state == KEEPER_JOB_RUNNING)
		return keeper_conn_wait_job(e, layer, ret_bytes, err);
	*ret_bytes = job.bytes;
	return 0;
}

int keeper_conn_has_layer(struct engine *e, const char *layer, bool *ret, struct err *err)
{
	struct keeper_listing l;

	if (keeper_listing_read(e, &l, err) < 0)
		return -1;
	*ret = keeper_listing_has_layer(&l, layer);
	keeper_listing_fini(&l);
	return 0;
}
