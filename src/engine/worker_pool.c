/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/worker_pool.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "engine/internal.h"
#include "engine/keeper_conn.h"

struct job {
	struct job *next;
	void (*fn)(struct engine *e, void *arg);
	void *arg;
};

static void *run_worker(void *arg)
{
	struct engine *e = arg;
	struct worker_pool *w = &e->workers;

	(void)keeper_conn_set_patience(
		KEEPER_IMPATIENT); /* results of commands wait behind its jobs */
	MUTEX_GUARD(&w->mutex);
	for (;;) {
		struct job *j;

		while (!w->jobs && !w->stopping)
			pthread_cond_wait(&w->added, &w->mutex);
		j = w->jobs;
		if (!j)
			return NULL;
		w->jobs = j->next;
		if (!w->jobs)
			w->jobs_tail = &w->jobs;
		pthread_mutex_unlock(&w->mutex);
		j->fn(e, j->arg);
		free(j);
		pthread_mutex_lock(&w->mutex);
		if (--w->njobs == 0)
			pthread_cond_broadcast(&w->done);
	}
}

int engine_post(struct engine *e, void (*fn)(struct engine *e, void *arg), void *arg,
		struct err *err)
{
	struct worker_pool *w = &e->workers;
	struct job *j;

	pthread_mutex_lock(&w->mutex);
	if (w->nthreads == 0 || w->stopping) {
		pthread_mutex_unlock(&w->mutex);
		fn(e, arg);
		return 0;
	}
	j = malloc(sizeof(*j));
	if (j) {
		*j = (struct job){ .fn = fn, .arg = arg };
		*w->jobs_tail = j;
		w->jobs_tail = &j->next;
		w->njobs++;
		pthread_cond_signal(&w->added);
	}
	pthread_mutex_unlock(&w->mutex);
	return j ? 0 : err_sys(err, ENOMEM, "work");
}

int worker_pool_start(struct engine *e, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(e->workers.threads); i++) {
		int r = pthread_create(&e->workers.threads[i], NULL, run_worker, e);

		if (r)
			return err_sys(err, r, "worker thread");
		pthread_mutex_lock(&e->workers.mutex);
		e->workers.nthreads++;
		pthread_mutex_unlock(&e->workers.mutex);
	}
	return 0;
}

void worker_pool_stop(struct engine *e)
{
	pthread_mutex_lock(&e->workers.mutex);
	e->workers.stopping = true;
	pthread_cond_broadcast(&e->workers.added);
	pthread_mutex_unlock(&e->workers.mutex);
	for (unsigned i = 0; i < e->workers.nthreads; i++)
		pthread_join(e->workers.threads[i], NULL);
}
