/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/keeper_listing.h"
#include "layers/layers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/test_hook.h"
#include "sandbox/layer_client.h"
#include "engine/keeper_conn.h"

enum {
	PAGE = 100, /* rows per question to the store */
	STRAYS_MS = 10 * 60 * 1000, /* how often the files are compared with the rows */
};

/* ---- stacks ---------------------------------------------------------------------------------- */

int layers_list_deep_stack(struct engine *e, const char *top, char (*ret)[STORE_ID],
			   size_t *ret_count, struct err *err)
{
	struct store_layer l;
	char at[STORE_ID];
	size_t n = 0;
	int r = 0;

	snprintf(at, sizeof(at), "%s", top);
	while (r == 0 && *at) {
		if (n == KEEPER_LAYERS_MAX)
			return err_set(err, ERR_LIMIT, "layer %s has more than %d layers below it",
				       top, KEEPER_LAYERS_MAX - 1);
		WITH_STORE(e, st)
		r = store_layer_get(st, at, &l, err);
		if (r < 0 && err->code == ERR_NOT_FOUND)
			return err_set(err, ERR_INTERNAL, "layer %s is missing", at);
		memcpy(ret[n++], at, sizeof(*ret));
		memcpy(at, l.parent, sizeof(at));
	}
	if (r < 0)
		return -1;
	*ret_count = n;
	return 0;
}

/* One layer fewer than the maximum: what is sealed on top must still fit into a request to
 * flatten. */
int layers_list_stack(struct engine *e, const char *top, char (*ret)[STORE_ID], size_t *ret_count,
		      struct err *err)
{
	char ids[KEEPER_LAYERS_MAX][STORE_ID];
	size_t n = 0;

	if (layers_list_deep_stack(e, top, ids, &n, err) < 0)
		return -1;
	if (n == KEEPER_LAYERS_MAX)
		return err_set(
			err, ERR_LIMIT,
			"the files are %zu layers deep, and %d is the most; they are merged in "
			"the background: try again",
			n, KEEPER_LAYERS_MAX - 1);
	memcpy(ret, ids, n * sizeof(*ids));
	*ret_count = n;
	return 0;
}

/* ---- new layers ------------------------------------------------------------------------------ */

int layers_reserve(struct engine *e, struct layer_reservation *l, struct err *err)
{
	if (id_generate("lay_", l->id, err) < 0)
		return -1;
	l->engine = e;
	pthread_mutex_lock(&e->mutex);
	l->next = e->layers.reserved;
	e->layers.reserved = l;
	pthread_mutex_unlock(&e->mutex);
	return 0;
}

void layers_unreserve(struct layer_reservation *l)
{
	struct layer_reservation **p;

	if (!l || !l->engine)
		return;
	p = &l->engine->layers.reserved;
	pthread_mutex_lock(&l->engine->mutex);
	while (*p != l)
		p = &(*p)->next;
	*p = l->next;
	pthread_mutex_unlock(&l->engine->mutex);
	l->engine = NULL;
}

static bool is_reserved(struct engine *e, const char *id)
{
	bool yes = false;

	pthread_mutex_lock(&e->mutex);
	for (const struct layer_reservation *l = e->layers.reserved; l && !yes; l = l->next)
		yes = strcmp(l->id, id) == 0;
	pthread_mutex_unlock(&e->mutex);
	return yes;
}

int layers_add(struct engine *e, const char *id, const char *parent, const char *template,
	       uint64_t bytes, struct err *err)
{
	struct store_layer l = { .bytes = (int64_t)bytes, .created_at = engine_now(e) };

	snprintf(l.id, sizeof(l.id), "%s", id);
	snprintf(l.parent, sizeof(l.parent), "%s", parent);
	snprintf(l.template, sizeof(l.template), "%s", template);
	return STORE_CALL(e, store_layer_add, &l, err);
}

/* ---- holds ----------------------------------------------------------------------------------- */

int layers_hold(struct engine *e, const char *layer, const char *holder, struct err *err)
{
	return STORE_CALL(e, store_layer_ref, layer, holder, err);
}

void layers_release(struct engine *e, const char *layer, const char *holder)
{
	struct err ignored; /* the next start forgets it */

	WITH_STORE(e, st)
	(void)store_layer_unref(st, layer, holder, &ignored);
}

void layers_forget_holds(struct engine *e)
{
	static const char *const kinds[] = { "fork:", "export:", "merge:" };
	struct err ignored;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		WITH_STORE(e, st)
	(void)store_layer_release(st, kinds[i], &ignored);
}

/* ---- unreferenced layers --------------------------------------------------------------------- */

static int drop_files(struct engine *e, const char *id)
{
	struct err ignored; /* what stays is a stray */

	return KEEPER_CALL(e, &ignored, layer_drop, id, &ignored);
}

/* The row goes first: the store refuses while it is referenced, and without a row it cannot be
 * referenced again. */
static bool collect_one(struct engine *e, const char *id)
{
	struct err ignored;

	if (STORE_CALL(e, store_layer_remove, id, &ignored) < 0)
		return false;
	hook_crash("collect:dropped");
	(void)drop_files(e, id);
	return true;
}

/* Removing a layer may leave the one below unreferenced: repeats until none is found. */
static int collect_rows(struct engine *e)
{
	int64_t before = engine_now(e) - LAYER_GRACE_MS;
	struct err ignored;
	int removed = 0, now;

	do {
		struct store_layer_list l = { 0 };
		int r = -1;

		now = 0;
		WITH_STORE(e, st)
		r = store_layer_find_unreferenced(st, before, PAGE, &l, &ignored);
		for (size_t i = 0; r == 0 && i < l.count; i++)
			now += collect_one(e, l.items[i].id);
		store_layer_list_fini(&l);
		removed += now;
	} while (now > 0);
	return removed;
}

/* ---- files without a row --------------------------------------------------------------------- */

static bool has_row(struct engine *e, const char *id)
{
	struct store_layer l;
	struct err err = { 0 };
	int r = STORE_CALL(e, store_layer_get, id, &l, &err);

	return r == 0 || err.code != ERR_NOT_FOUND; /* if in doubt, keep it */
}

struct strays {
	char (*ids)[STORE_ID];
	size_t count;
};

static int find_candidates(struct engine *e, struct strays *ret, struct err *err)
{
	struct keeper_listing l;
	struct strays s = { 0 };

	if (keeper_listing_read(e, &l, err) < 0)
		return -1;
	s.ids = calloc(l.count + 1, sizeof(*s.ids));
	for (size_t i = 0; s.ids && i < l.count; i++)
		if (l.items[i].what == KEEPER_IS_LAYER && !has_row(e, l.items[i].id) &&
		    !is_reserved(e, l.items[i].id))
			memcpy(s.ids[s.count++], l.items[i].id, sizeof(*s.ids));
	keeper_listing_fini(&l);
	if (!s.ids)
		return err_sys(err, ENOMEM, "layers");
	*ret = s;
	return 0;
}

/* A layer has the name of the sandbox it was: the one that a session has now may have been sealed,
 * and its row is about to be written. */
static void keep_named(struct strays *s, const struct store_session_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		for (size_t j = 0; j < s->count; j++)
			if (strcmp(s->ids[j], l->items[i].sandbox) == 0) {
				memmove(s->ids[j], s->ids[s->count - 1], sizeof(*s->ids));
				s->count--;
				break;
			}
}

static int keep_all_named(struct engine *e, struct strays *s, struct err *err)
{
	struct store_session_filter any = { 0 };
	struct store_page page = { .limit = PAGE };
	int r = 0;

	while (r == 0 && s->count > 0) {
		struct store_session_list l = { 0 };

		WITH_STORE(e, st)
		r = store_session_list(st, &any, page, &l, err);
		if (r == 0)
			keep_named(s, &l);
		page.after = l.next;
		store_session_list_fini(&l);
		if (!page.after)
			break;
	}
	return r;
}

int layers_remove_strays(struct engine *e)
{
	struct strays s = { 0 };
	struct err ignored;
	int removed = 0;

	if (find_candidates(e, &s, &ignored) < 0)
		return 0;
	if (keep_all_named(e, &s, &ignored) < 0)
		s.count = 0;
	/* checked again: a layer that was referenced or made before has its row by now */
	for (size_t i = 0; i < s.count; i++)
		if (!has_row(e, s.ids[i]))
			removed += drop_files(e, s.ids[i]) == 0;
	free(s.ids);
	return removed;
}

/* Both kinds of things are many, and files without a row are rare. */
static bool is_check_due(struct engine *e)
{
	int64_t now = engine_now(e);
	bool yes;

	pthread_mutex_lock(&e->mutex);
	yes = !e->layers.checked_at || now - e->layers.checked_at >= STRAYS_MS;
	if (yes)
		e->layers.checked_at = now;
	pthread_mutex_unlock(&e->mutex);
	return yes;
}

/* What builds of templates and runs without a service left in this home when they were killed. */
static void sweep_leftovers(struct engine *e)
{
	struct keeper_request req = keeper_client_request(KEEPER_SWEEP, NULL);
	struct err ignored; /* the next check tries again */

	(void)keeper_conn_call(e, &req, NULL, &ignored);
}

int layers_collect(struct engine *e)
{
	int removed = collect_rows(e);

	if (is_check_due(e)) {
		removed += layers_remove_strays(e);
		sweep_leftovers(e);
	}
	return removed;
}
