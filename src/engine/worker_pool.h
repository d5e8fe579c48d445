/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for work that no caller waits for. */
#ifndef LODGE_ENGINE_WORKER_POOL_H
#define LODGE_ENGINE_WORKER_POOL_H

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"

struct engine;
struct job;

struct worker_pool {
	pthread_mutex_t mutex; /* of all of it, and of engine.exec_writes; taken last */
	pthread_t threads[2];
	unsigned nthreads;
	bool stopping;
	struct job *jobs, **jobs_tail;
	unsigned njobs; /* waiting or running */
	pthread_cond_t added, done;
};

int worker_pool_start(struct engine *e, struct err *err);
void worker_pool_stop(struct engine *e); /* after the last job */
/* Runs fn(arg) on a worker, or at once without threads. */
int engine_post(struct engine *e, void (*fn)(struct engine *e, void *arg), void *arg,
		struct err *err);

#endif
