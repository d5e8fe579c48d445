/* SPDX-License-Identifier: Apache-2.0 */
/* Background work on layers: keeper jobs that are started and polled by the engine's workers. */
#ifndef LODGE_LAYERS_LAYER_TASK_H
#define LODGE_LAYERS_LAYER_TASK_H

#include "engine/internal.h"

struct layer_task {
	struct layer_task *next; /* of engine.layers.tasks */
	struct engine *engine;
	int (*step)(struct layer_task *t); /* 0: call again; else the task is over */
	void (*free)(struct layer_task *t);
	bool started; /* the keeper has a job named `layer` */
	unsigned tries;
	char layer[STORE_ID]; /* that the job works on, or makes */
	char session[STORE_ID]; /* that the task is for; "": none */
};

/* Queues the task, which was allocated by the caller, and takes it over. */
void layer_task_add(struct engine *e, struct layer_task *t);
/* Whether a task of this session is queued. */
bool layer_task_exists(struct engine *e, const char *session);
/* Whether the task may start its keeper job now. */
bool layer_task_may_start(const struct layer_task *t);
/* Asks the keeper for the job of the task: 1: done, 0: not yet, -1: failed. */
int layer_task_poll(struct layer_task *t, uint64_t *ret_bytes);

#endif
