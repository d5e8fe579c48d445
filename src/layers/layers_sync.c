/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to layers in the background: made durable and measured, and merged where a stack got
 * too deep. The keeper does the work in jobs; here is who starts them and asks for their end. All
 * of an engine's are looked at together, for a moment each, so that they hold up one worker for
 * some milliseconds at a time however many there are and however long they take. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/test_hook.h"
#include "sandbox/layer_client.h"
#include "layers/layers.h"
#include "engine/keeper_conn.h"
#include "layers/layers_sync.h"

enum {
	PAUSE_US = 10000, /* between two looks */
	TRIES = 3, /* a keeper that dies in the middle is not asked for ever */
	STARTED_MAX = 2, /* jobs at once; callers wait for some that the keeper has to start, too */
	PAGE = 100,
};

struct task {
	struct task *next;
	struct engine *engine;
	int (*step)(struct task *t); /* 0: not over yet */
	bool started; /* the keeper has a job of this name */
	unsigned tries;
	char layer[STORE_ID]; /* to settle, or being made */
	/* of a merge; the layer is "" until it was begun */
	char session[STORE_ID], top[STORE_ID], template[STORE_ID], holder[STORE_KEY];
	struct layer_reservation new;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct task *tasks; /* of all engines, in the order in which they came */

/* ---- the list; all with the mutex ------------------------------------------------------------ */

static struct task *first_of(const struct engine *e, struct task *from)
{
	while (from && from->engine != e)
		from = from->next;
	return from;
}

static unsigned count_started(const struct engine *e)
{
	unsigned n = 0;

	for (const struct task *t = first_of(e, tasks); t; t = first_of(e, t->next))
		n += t->started;
	return n;
}

static void unlink_task(struct task *t)
{
	struct task **p = &tasks;

	while (*p != t)
		p = &(*p)->next;
	*p = t->next;
}

/* ---- jobs of the keeper ---------------------------------------------------------------------- */

static bool may_start(const struct task *t)
{
	bool yes;

	pthread_mutex_lock(&mutex);
	yes = count_started(t->engine) < STARTED_MAX;
	pthread_mutex_unlock(&mutex);
	return yes;
}

/* 1: it is done, 0: not yet, -1: it cannot be done. */
static int look(struct task *t, uint64_t *ret_bytes)
{
	struct keeper_job job;
	struct err ignored;
	struct keeper_client *k = keeper_conn_lock(t->engine, &ignored);
	int r;

	if (!k)
		return -1;
	r = layer_job(k, t->layer, &job, &ignored);
	keeper_conn_unlock(t->engine);
	if (r < 0)
		return -1;
	if (job.state == KEEPER_JOB_NONE) { /* it ended with its keeper: another one begins again */
		t->started = false;
		return ++t->tries < TRIES ? 0 : -1;
	}
	*ret_bytes = job.bytes;
	return job.state == KEEPER_JOB_DONE;
}

/* ---- settling -------------------------------------------------------------------------------- */

/* 0 also when the keeper has too much to do just now. */
static int start_sync(struct task *t)
{
	struct err err;
	struct keeper_client *k;
	int r;

	if (!may_start(t))
		return 0;
	k = keeper_conn_lock(t->engine, &err);
	if (!k)
		return -1;
	r = layer_sync(k, t->layer, &err);
	keeper_conn_unlock(t->engine);
	t->started = r == 0;
	return r < 0 && err.sys != EBUSY ? -1 : 0;
}

static int step_sync(struct task *t)
{
	struct err ignored; /* it is gone, or the next start tries again */
	uint64_t bytes = 0;
	int r;

	if (!t->started)
		return start_sync(t);
	r = look(t, &bytes);
	if (r > 0)
		WITH_STORE(t->engine, st)
	(void)store_layer_settle(st, t->layer, (int64_t)bytes, &ignored);
	return r;
}

/* ---- merging --------------------------------------------------------------------------------- */

static bool may_flatten(const struct store_session *s)
{
	return *s->layer && s->runtime == SESSION_RUNTIME_RESUMABLE &&
	       (s->state == SESSION_HIBERNATED || s->state == SESSION_FAILED);
}

/* Which layers. From here on the topmost is held: nobody makes it a sandbox's again, so that what
 * is merged does not change. */
static int choose(struct task *t, char (*ids)[STORE_ID], size_t *ret_count)
{
	auto_call(session_unlock) struct session *n = NULL;
	struct store_layer l;
	struct err ignored;
	int r = -1;

	if (!session_trylock(t->engine, t->session, &n) || !may_flatten(&n->rec) ||
	    layers_list_deep_stack(t->engine, n->rec.layer, ids, ret_count, &ignored) < 0 ||
	    *ret_count <= LAYERS_FLATTEN)
		return -1;
	memcpy(t->top, n->rec.layer, sizeof(t->top));
	WITH_STORE(t->engine, st)
	r = store_layer_get(st, t->top, &l, &ignored);
	if (r < 0 || layers_reserve(&t->new, &ignored) < 0)
		return -1;
	memcpy(t->template, l.template, sizeof(t->template));
	memcpy(t->layer, t->new.id, sizeof(t->layer));
	snprintf(t->holder, sizeof(t->holder), "merge:%s", t->layer);
	return layers_hold(t->engine, t->top, t->holder, &ignored);
}

static int use_merged(struct task *t)
{
	auto_call(session_unlock) struct session *n = NULL;
	struct store_session s = { 0 };
	struct err ignored;

	if (!session_trylock(t->engine, t->session, &n) || !may_flatten(&n->rec) ||
	    strcmp(n->rec.layer, t->top) != 0 || store_session_copy(&n->rec, &s, &ignored) < 0)
		return -1;
	memcpy(s.layer, t->layer, sizeof(s.layer));
	if (session_update(n, &s, "flatten", &ignored) == 0)
		return 0;
	store_session_fini(&s);
	return -1;
}

/* If the session is another now, nothing names the new layer and it goes by itself. */
static int end_merge(struct task *t, uint64_t bytes)
{
	struct err ignored;
	int r = layers_add(t->engine, t->layer, "", t->template, bytes, &ignored);

	hook_crash("flatten:layered");
	if (r == 0 && use_merged(t) == 0) {
		hook_crash("flatten:used");
		layers_sync(t->engine, t->layer);
	}
	return 1;
}

static int start_merge(struct task *t)
{
	char ids[KEEPER_LAYERS_MAX][STORE_ID];
	const char *names[KEEPER_LAYERS_MAX];
	size_t n;
	struct keeper_job job = { 0 };
	struct err ignored;
	struct keeper_client *k;
	int r;

	if (!may_start(t))
		return 0;
	if (choose(t, ids, &n) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		names[i] = ids[i];
	k = keeper_conn_lock(t->engine, &ignored);
	if (!k)
		return -1;
	r = layer_merge(k, t->layer, names, n, &job, &ignored);
	keeper_conn_unlock(t->engine);
	if (r < 0)
		return -1; /* the next round tries again */
	t->started = true;
	return job.state == KEEPER_JOB_DONE ? end_merge(t, job.bytes) : 0;
}

static int step_merge(struct task *t)
{
	uint64_t bytes = 0;
	int r;

	if (!t->started)
		return *t->layer ? -1 : start_merge(t);
	r = look(t, &bytes);
	return r > 0 ? end_merge(t, bytes) : r;
}

static void task_free(struct task *t)
{
	if (*t->holder)
		layers_release(t->engine, t->top, t->holder);
	layers_unreserve(&t->new);
	free(t);
}

/* ---- all of an engine's ---------------------------------------------------------------------- */

static bool is_closing(struct engine *e)
{
	bool yes;

	pthread_mutex_lock(&e->workers.mutex);
	yes = e->workers.stopping;
	pthread_mutex_unlock(&e->workers.mutex);
	return yes;
}

/* Only this changes tasks that are on the list, and one at a time: it posts itself. */
static bool look_at_all(struct engine *e, bool give_up)
{
	struct task *t, *next;
	bool more = false;

	pthread_mutex_lock(&mutex);
	for (t = first_of(e, tasks); t; t = next) {
		bool over;

		pthread_mutex_unlock(&mutex);
		over = give_up || t->step(t) != 0;
		pthread_mutex_lock(&mutex);
		next = first_of(e, t->next);
		more |= !over;
		if (!over)
			continue;
		unlink_task(t);
		pthread_mutex_unlock(&mutex);
		task_free(t);
		pthread_mutex_lock(&mutex);
	}
	pthread_mutex_unlock(&mutex);
	return more;
}

static void work(struct engine *e, void *arg)
{
	struct err ignored;

	(void)arg;
	while (look_at_all(e, is_closing(e))) {
		usleep(PAUSE_US);
		if (e->opts.no_threads)
			continue;
		if (engine_post(e, work, NULL, &ignored) == 0)
			return;
		(void)look_at_all(e, true);
	}
}

/* Where there are some already, somebody looks at them and comes to this one. */
static void add(struct engine *e, const struct task *new)
{
	struct task *t = malloc(sizeof(*t)), **p = &tasks;
	struct err ignored;
	bool alone;

	if (!t)
		return; /* the next start, or the next round, finds it again */
	*t = *new;
	t->engine = e;
	pthread_mutex_lock(&mutex);
	alone = !first_of(e, tasks);
	while (*p)
		p = &(*p)->next;
	*p = t;
	pthread_mutex_unlock(&mutex);
	if (alone && engine_post(e, work, NULL, &ignored) < 0)
		(void)look_at_all(e, true);
}

void layers_sync(struct engine *e, const char *layer)
{
	struct task t = { .step = step_sync };

	snprintf(t.layer, sizeof(t.layer), "%s", layer);
	add(e, &t);
}

void layers_sync_all(struct engine *e)
{
	struct store_layer_list l;
	struct err ignored;
	char after[STORE_ID] = "";
	size_t count;
	int r = -1;

	layers_forget_holds(e);
	do {
		l = (struct store_layer_list){ 0 };
		WITH_STORE(e, st)
		r = store_layer_unsettled(st, after, PAGE, &l, &ignored);
		for (size_t i = 0; r == 0 && i < l.count; i++) {
			layers_sync(e, l.items[i].id);
			memcpy(after, l.items[i].id, sizeof(after));
		}
		count = l.count;
		store_layer_list_fini(&l);
	} while (r == 0 && count == PAGE);
	snapshot_clean_imports(e);
	(void)layers_remove_strays(e);
}

static bool is_merging(struct engine *e, const char *session)
{
	bool yes = false;

	pthread_mutex_lock(&mutex);
	for (const struct task *t = first_of(e, tasks); t && !yes; t = first_of(e, t->next))
		yes = strcmp(t->session, session) == 0;
	pthread_mutex_unlock(&mutex);
	return yes;
}

void layers_flatten(struct engine *e)
{
	uint64_t asleep = SM_BIT(SESSION_HIBERNATED) | SM_BIT(SESSION_FAILED);
	struct store_session_list l = { 0 };
	struct err ignored;
	int r = -1;

	WITH_STORE(e, st)
	r = store_session_deep(st, asleep, LAYERS_FLATTEN, PAGE, &l, &ignored);
	for (size_t i = 0; r == 0 && i < l.count; i++) {
		struct task t = { .step = step_merge };

		if (is_merging(e, l.items[i].id))
			continue;
		memcpy(t.session, l.items[i].id, sizeof(t.session));
		add(e, &t);
	}
	store_session_list_fini(&l);
}
