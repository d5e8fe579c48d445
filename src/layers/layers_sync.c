/* SPDX-License-Identifier: Apache-2.0 */
/* Makes layers durable and measures them, in the background. */
#include "layers/layers_sync.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/keeper_conn.h"
#include "layers/layer_task.h"
#include "layers/layers.h"
#include "sandbox/layer_client.h"

enum { PAGE = 100 };

/* 0 also when the keeper is too busy at the moment. */
static int start_sync(struct layer_task *t)
{
	struct err err = { 0 };

	if (!layer_task_may_start(t))
		return 0;
	t->started = KEEPER_CALL(t->engine, &err, layer_sync, t->layer, &err) == 0;
	return !t->started && err.sys != EBUSY ? -1 : 0;
}

static int step_sync(struct layer_task *t)
{
	struct err ignored; /* the layer is gone, or the next start tries again */
	uint64_t bytes = 0;
	int r;

	if (!t->started)
		return start_sync(t);
	r = layer_task_poll(t, &bytes);
	if (r > 0)
		WITH_STORE(t->engine, st)
	(void)store_layer_mark_durable(st, t->layer, (int64_t)bytes, &ignored);
	return r;
}

static void free_sync(struct layer_task *t)
{
	free(t);
}

void layers_sync(struct engine *e, const char *layer)
{
	struct layer_task *t = calloc(1, sizeof(*t));

	if (!t)
		return; /* the next start finds it again */
	t->step = step_sync;
	t->free = free_sync;
	snprintf(t->layer, sizeof(t->layer), "%s", layer);
	layer_task_add(e, t);
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
		r = store_layer_find_unsynced(st, after, PAGE, &l, &ignored);
		for (size_t i = 0; r == 0 && i < l.count; i++) {
			layers_sync(e, l.items[i].id);
			memcpy(after, l.items[i].id, sizeof(after));
		}
		count = l.count;
		store_layer_list_fini(&l);
	} while (r == 0 && count == PAGE);
	(void)layers_remove_strays(e);
}
