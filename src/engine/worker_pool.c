/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/worker_pool.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "engine/internal.h"

struct job {
	struct job *next;
	void (*fn)(struct engine *e, void *arg);
	void *arg;
};

static void *run_worker(void *arg)
{
	struct engine *e = arg;

	pthread_mutex_lock(&e->workers.mutex);
	for (;;) {
		struct job *j = e->workers.jobs;

		if (!j && e->workers.stopping)
			break;
		if (!j) {
			pthread_cond_wait(&e->workers.added, &e->workers.mutex);
			continue;
		}
		e->workers.jobs = j->next;
		if (!e->workers.jobs)
			e->workers.jobs_tail = &e->workers.jobs;
		pthread_mutex_unlock(&e->workers.mutex);
		j->fn(e, j->arg);
		free(j);
		pthread_mutex_lock(&e->workers.mutex);
		if (--e->workers.njobs == 0)
			pthread_cond_broadcast(&e->workers.done);
	}
	pthread_mutex_unlock(&e->workers.mutex);
	return NULL;
}

int engine_post(struct engine *e, void (*fn)(struct engine *e, void *arg), void *arg,
		struct err *err)
{
	struct job *j;
	bool inline_only;

	pthread_mutex_lock(&e->workers.mutex);
	inline_only = e->workers.nthreads == 0 || e->workers.stopping;
	pthread_mutex_unlock(&e->workers.mutex);
	if (inline_only) {
		fn(e, arg);
		return 0;
	}
	j = malloc(sizeof(*j));
	if (!j)
		return err_sys(err, ENOMEM, "work");
	*j = (struct job){ .fn = fn, .arg = arg };
	pthread_mutex_lock(&e->workers.mutex);
	*e->workers.jobs_tail = j;
	e->workers.jobs_tail = &j->next;
	e->workers.njobs++;
	pthread_cond_signal(&e->workers.added);
	pthread_mutex_unlock(&e->workers.mutex);
	return 0;
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
