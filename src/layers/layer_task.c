/* SPDX-License-Identifier: Apache-2.0 */
/* One worker steps through all tasks of an engine, then pauses: the tasks occupy a worker for a few
 * milliseconds at a time, however many there are and however long they take. */
#include "layers/layer_task.h"

#include <string.h>
#include <unistd.h>

#include "engine/keeper_conn.h"
#include "sandbox/layer_client.h"

enum {
	PAUSE_US = 10000, /* between two rounds */
	TRIES = 3, /* starts of a job whose keeper dies */
	STARTED_MAX = 2, /* jobs at once, so that the keeper can also start those of callers */
};

/* ---- the list; with engine.mutex ------------------------------------------------------------- */

static unsigned count_started(const struct engine *e)
{
	unsigned n = 0;

	for (const struct layer_task *t = e->layers.tasks; t; t = t->next)
		n += t->started;
	return n;
}

static void unlink_task(struct engine *e, struct layer_task *t)
{
	struct layer_task **p = &e->layers.tasks;

	while (*p != t)
		p = &(*p)->next;
	*p = t->next;
}

/* ---- one task -------------------------------------------------------------------------------- */

bool layer_task_may_start(const struct layer_task *t)
{
	bool yes;

	pthread_mutex_lock(&t->engine->mutex);
	yes = count_started(t->engine) < STARTED_MAX;
	pthread_mutex_unlock(&t->engine->mutex);
	return yes;
}

int layer_task_poll(struct layer_task *t, uint64_t *ret_bytes)
{
	struct keeper_job job = { 0 };
	struct err ignored;

	if (KEEPER_CALL(t->engine, &ignored, layer_job, t->layer, &job, &ignored) < 0)
		return -1;
	if (job.state == KEEPER_JOB_NONE) { /* the job ended with its keeper: start it again */
		t->started = false;
		return ++t->tries < TRIES ? 0 : -1;
	}
	*ret_bytes = job.bytes;
	return job.state == KEEPER_JOB_DONE;
}

bool layer_task_exists(struct engine *e, const char *session)
{
	bool yes = false;

	pthread_mutex_lock(&e->mutex);
	for (const struct layer_task *t = e->layers.tasks; t && !yes; t = t->next)
		yes = strcmp(t->session, session) == 0;
	pthread_mutex_unlock(&e->mutex);
	return yes;
}

/* ---- all tasks of an engine ------------------------------------------------------------------ */

static bool is_closing(struct engine *e)
{
	bool yes;

	pthread_mutex_lock(&e->workers.mutex);
	yes = e->workers.stopping;
	pthread_mutex_unlock(&e->workers.mutex);
	return yes;
}

/* Only one thread at a time is here, because the job posts itself; nothing else changes or removes
 * a queued task. True: some are not over yet. */
static bool step_all(struct engine *e, bool cancel)
{
	struct layer_task *t, *next;
	bool more = false;

	pthread_mutex_lock(&e->mutex);
	for (t = e->layers.tasks; t; t = next) {
		bool over;

		pthread_mutex_unlock(&e->mutex);
		over = cancel || t->step(t) != 0;
		pthread_mutex_lock(&e->mutex);
		next = t->next;
		more |= !over;
		if (!over)
			continue;
		unlink_task(e, t);
		pthread_mutex_unlock(&e->mutex);
		t->free(t);
		pthread_mutex_lock(&e->mutex);
	}
	pthread_mutex_unlock(&e->mutex);
	return more;
}

static void run_tasks(struct engine *e, void *arg)
{
	struct err ignored;

	(void)arg;
	while (step_all(e, is_closing(e))) {
		usleep(PAUSE_US);
		if (e->opts.no_threads)
			continue;
		if (engine_post(e, run_tasks, NULL, &ignored) == 0)
			return;
		(void)step_all(e, true);
	}
}

/* With tasks in the list a worker runs already, and reaches the new one. */
void layer_task_add(struct engine *e, struct layer_task *t)
{
	struct layer_task **p = &e->layers.tasks;
	struct err ignored;
	bool first;

	t->engine = e;
	t->next = NULL;
	pthread_mutex_lock(&e->mutex);
	first = !*p;
	while (*p)
		p = &(*p)->next;
	*p = t;
	pthread_mutex_unlock(&e->mutex);
	if (first && engine_post(e, run_tasks, NULL, &ignored) < 0)
		(void)step_all(e, true);
}
