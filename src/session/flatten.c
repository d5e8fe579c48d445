/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the layers below a session into one. The keeper copies the files; the session is locked
 * only to choose the layers and to use the result. */
#include "session/flatten.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "layers/layer_task.h"
#include "layers/layers.h"
#include "layers/layers_sync.h"
#include "sandbox/layer_client.h"
#include "session/session.h"

enum { PAGE = 100 };

struct flatten {
	struct layer_task task; /* first; its layer is "" until the layers are chosen */
	char top[STORE_ID], template[STORE_ID], holder[STORE_KEY];
	struct layer_reservation merged;
};

static bool can_flatten(const struct store_session *s)
{
	return *s->layer && s->runtime == SESSION_RUNTIME_RESUMABLE &&
	       (s->state == SESSION_HIBERNATED || s->state == SESSION_FAILED);
}

/* Holds the topmost layer: no sandbox takes it again, so the merged files cannot change. */
static int choose_layers(struct flatten *f, char (*ids)[STORE_ID], size_t *ret_count)
{
	auto_call(session_unlock) struct session *n = NULL;
	struct engine *e = f->task.engine;
	struct store_layer l;
	struct err ignored;

	if (!session_trylock(e, f->task.session, &n) || !can_flatten(&n->rec) ||
	    layers_list_deep_stack(e, n->rec.layer, ids, ret_count, &ignored) < 0 ||
	    *ret_count <= LAYERS_FLATTEN)
		return -1;
	memcpy(f->top, n->rec.layer, sizeof(f->top));
	if (STORE_CALL(e, store_layer_get, f->top, &l, &ignored) < 0 ||
	    layers_reserve(e, &f->merged, &ignored) < 0)
		return -1;
	memcpy(f->template, l.template, sizeof(f->template));
	memcpy(f->task.layer, f->merged.id, sizeof(f->task.layer));
	snprintf(f->holder, sizeof(f->holder), "merge:%s", f->task.layer);
	return layers_hold(e, f->top, f->holder, &ignored);
}

static int use_merged(struct flatten *f)
{
	auto_call(session_unlock) struct session *n = NULL;
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct err ignored;

	if (!session_trylock(f->task.engine, f->task.session, &n) || !can_flatten(&n->rec) ||
	    strcmp(n->rec.layer, f->top) != 0 || store_session_copy(&n->rec, &s, &ignored) < 0)
		return -1;
	memcpy(s.layer, f->task.layer, sizeof(s.layer));
	return session_update(n, &s, "flatten", &ignored);
}

/* If the session has changed meanwhile, nothing names the new layer and it is collected. */
static int end_merge(struct flatten *f, uint64_t bytes)
{
	struct err ignored;
	int r = layers_add(f->task.engine, f->task.layer, "", f->template, bytes, &ignored);

	hook_crash("flatten:layered");
	if (r == 0 && use_merged(f) == 0) {
		hook_crash("flatten:used");
		layers_sync(f->task.engine, f->task.layer);
	}
	return 1;
}

static int start_merge(struct flatten *f)
{
	char ids[KEEPER_LAYERS_MAX][STORE_ID];
	const char *names[KEEPER_LAYERS_MAX];
	size_t n;
	struct keeper_job job = { 0 };
	struct err ignored;

	if (!layer_task_may_start(&f->task))
		return 0;
	if (choose_layers(f, ids, &n) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		names[i] = ids[i];
	if (KEEPER_CALL_ONCE(f->task.engine, &ignored, layer_merge, f->task.layer, names, n, &job,
			     &ignored) < 0)
		return -1; /* the next round tries again */
	f->task.started = true;
	return job.state == KEEPER_JOB_DONE ? end_merge(f, job.bytes) : 0;
}

static int step_merge(struct layer_task *t)
{
	struct flatten *f = (struct flatten *)t;
	uint64_t bytes = 0;
	int r;

	if (!t->started)
		return *t->layer ? -1 : start_merge(f);
	r = layer_task_poll(t, &bytes);
	return r > 0 ? end_merge(f, bytes) : r;
}

static void free_merge(struct layer_task *t)
{
	struct flatten *f = (struct flatten *)t;

	if (*f->holder)
		layers_release(t->engine, f->top, f->holder);
	layers_unreserve(&f->merged);
	free(f);
}

static void flatten_session(struct engine *e, const char *id)
{
	struct flatten *f;

	if (layer_task_exists(e, id))
		return;
	f = calloc(1, sizeof(*f));
	if (!f)
		return; /* the next round finds the session again */
	f->task.step = step_merge;
	f->task.free = free_merge;
	memcpy(f->task.session, id, sizeof(f->task.session));
	layer_task_add(e, &f->task);
}

void flatten_sessions(struct engine *e)
{
	uint64_t at_rest = SM_BIT(SESSION_HIBERNATED) | SM_BIT(SESSION_FAILED);
	struct store_session_list l = { 0 };
	struct err ignored;

	(void)STORE_CALL(e, store_session_find_deep, at_rest, LAYERS_FLATTEN, PAGE, &l, &ignored);
	for (size_t i = 0; i < l.count; i++)
		flatten_session(e, l.items[i].id);
	store_session_list_fini(&l);
}
