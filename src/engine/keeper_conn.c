/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: started when needed and again after it died; used by one thread at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"
#include "sandbox/layer_client.h"
#include "engine/internal.h"

enum {
	END_MS = 20000, /* for the processes of a sandbox to exit */
	JOB_MS = 3600 * 1000,
	WAIT_MIN_US = 200,
	WAIT_MAX_US = 50000,
	/* programs and settings of the host, below a slot's files, may change meanwhile */
	POOL_AGE_MS = 3600 * 1000,
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

static int start_keeper(struct engine *e, struct err *err)
{
	struct keeper_client_opts how = { .program = e->opts.keeper_program,
					  .home = e->home,
					  .start = e->opts.start_keeper,
					  .start_arg = e->opts.start_arg };

	if (keeper_client_spawn(&how, &e->keeper.client, err) < 0)
		return -1;
	e->keeper.start_failed = false;
	set_pool(e);
	return 0;
}

struct keeper_client *keeper_conn_lock(struct engine *e, struct err *err)
{
	pthread_mutex_lock(&e->keeper.mutex);
	if (e->keeper.client && keeper_client_is_dead(e->keeper.client)) {
		keeper_client_free(e->keeper.client);
		e->keeper.client = NULL;
	}
	if (!e->keeper.client && start_keeper(e, err) < 0) {
		pthread_mutex_unlock(&e->keeper.mutex);
		/* whatever failed, it is not the caller's fault */
		err->code = ERR_UNAVAILABLE;
		err->sys = 0;
		MUTEX_GUARD(&e->mutex);
		e->keeper.start_error = *err;
		e->keeper.start_failed = true;
		return NULL;
	}
	return e->keeper.client;
}

void keeper_conn_unlock(struct engine *e)
{
	pthread_mutex_unlock(&e->keeper.mutex);
}

void keeper_conn_revive(struct engine *e)
{
	struct err ignored; /* the next caller gets the error */

	if (pthread_mutex_trylock(&e->keeper.mutex) != 0)
		return; /* another thread uses it */
	pthread_mutex_unlock(&e->keeper.mutex);
	if (!keeper_conn_lock(e, &ignored))
		return;
	set_pool(e);
	keeper_conn_unlock(e);
}

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

	if (KEEPER_CALL(e, err, layer_snap, sandbox, layer, ret_whole, &job, err) < 0)
		return -1;
	if (job.state == KEEPER_JOB_RUNNING)
		return keeper_conn_wait_job(e, layer, ret_bytes, err);
	*ret_bytes = job.bytes;
	return 0;
}

/* ---- listing --------------------------------------------------------------------------------- */

static int add_item(void *arg, enum keeper_what what, const char *id, pid_t pid)
{
	struct keeper_listing *l = arg;
	struct keeper_listing_item *item = vec_push(&l->items, &l->count, SIZE_MAX);

	(void)pid;
	if (!item)
		return -1;
	item->what = what;
	strncpy(item->id, id, KEEPER_ID_SIZE - 1);
	return 0;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct keeper_listing_item *)a)->id,
		      ((const struct keeper_listing_item *)b)->id);
}

int keeper_conn_list(struct engine *e, struct keeper_listing *ret, struct err *err)
{
	struct keeper_listing l = { 0 };
	int r = KEEPER_CALL(e, err, keeper_client_list, add_item, &l, err);

	if (r != 0) {
		keeper_listing_fini(&l);
		return r < 0 ? -1 : err_sys(err, ENOMEM, "keeper listing");
	}
	if (l.count > 1)
		qsort(l.items, l.count, sizeof(*l.items), by_id);
	*ret = l;
	return 0;
}

int keeper_conn_has_layer(struct engine *e, const char *layer, bool *ret, struct err *err)
{
	struct keeper_listing l;

	if (keeper_conn_list(e, &l, err) < 0)
		return -1;
	*ret = keeper_listing_has_layer(&l, layer);
	keeper_listing_fini(&l);
	return 0;
}

void keeper_listing_fini(struct keeper_listing *l)
{
	free(l->items);
	*l = (struct keeper_listing){ 0 };
}

/* A sandbox and the layer made of it have the same id: both kinds may exist. */
static bool has_item(const struct keeper_listing *l, const char *id, enum keeper_what what)
{
	size_t lo = 0, hi = l->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(l->items[mid].id, id) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < l->count && strcmp(l->items[lo].id, id) == 0; lo++)
		if (l->items[lo].what == what)
			return true;
	return false;
}

enum keeper_presence keeper_listing_sandbox(const struct keeper_listing *l, const char *id)
{
	if (has_item(l, id, KEEPER_IS_SANDBOX))
		return KEEPER_PRESENCE_SANDBOX;
	return has_item(l, id, KEEPER_IS_FILES) ? KEEPER_PRESENCE_FILES : KEEPER_PRESENCE_NONE;
}

bool keeper_listing_has_layer(const struct keeper_listing *l, const char *id)
{
	return has_item(l, id, KEEPER_IS_LAYER);
}
