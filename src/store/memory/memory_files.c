/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/record_check.h"
#include "store/memory/memory.h"

/* ---- layers -------------------------------------------------------------------------------- */

static struct store_layer *layer_by_id(struct mem *m, const char *id)
{
	return mem_first(&m->layer, MEM_MATCH(MEM_IS(store_layer, id, id)));
}

static int64_t count_refs(struct mem *m, const char *id)
{
	if (!id[0]) /* what no record names is not what every record without one names */
		return 0;
	return mem_count(&m->session, MEM_MATCH(MEM_IS(store_session, layer, id))) +
	       mem_count(&m->snapshot, MEM_MATCH(MEM_IS(store_snapshot, layer, id))) +
	       mem_count(&m->layer, MEM_MATCH(MEM_IS(store_layer, parent, id))) +
	       mem_count(&m->hold, MEM_MATCH(MEM_IS(mem_hold, layer, id)));
}

static int layer_add(struct store *st, const struct store_layer *l, struct err *err)
{
	struct mem *m = mem_of(st);

	if (check_layer(l, err) < 0)
		return -1;
	if (layer_by_id(m, l->id))
		return err_set(err, ERR_CONFLICT, "layer %s is there already", l->id);
	if (l->parent[0] && !layer_by_id(m, l->parent))
		return err_set(err, ERR_CONFLICT, "there is no layer %s", l->parent);
	return mem_add(m, &m->layer, l, err) ? 0 : -1;
}

static int layer_get(struct store *st, const char *id, struct store_layer *ret, struct err *err)
{
	return mem_give(&mem_of(st)->layer, layer_by_id(mem_of(st), id), ret, "layer", id, err);
}

static int layer_settle(struct store *st, const char *id, int64_t bytes, struct err *err)
{
	struct store_layer *l = layer_by_id(mem_of(st), id);

	if (!l)
		return err_set(err, ERR_NOT_FOUND, "there is no layer %s", id);
	l->durable = true;
	l->bytes = bytes;
	mem_of(st)->changes++;
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(((const struct store_layer *)a)->id, ((const struct store_layer *)b)->id);
}

typedef bool layer_filter(struct mem *m, const struct store_layer *l, const void *arg);

/* The first `limit` of those that pass, in the order of `compare`. */
static int pick(struct mem *m, layer_filter *passes, const void *arg,
		int (*compare)(const void *, const void *), unsigned limit,
		struct store_layer_list *ret, struct err *err)
{
	const struct store_layer *rows = (const struct store_layer *)m->layer.rows;
	struct store_layer_list l = { 0 };

	if (check_page((struct store_page){ .limit = limit }, err) < 0)
		return -1;
	l.items = calloc(m->layer.count + 1, sizeof(*l.items));
	if (!l.items)
		return err_set(err, ERR_LIMIT, "no memory for a list of layers");
	for (size_t i = 0; i < m->layer.count; i++)
		if (passes(m, &rows[i], arg))
			l.items[l.count++] = rows[i];
	qsort(l.items, l.count, sizeof(*l.items), compare);
	if (l.count > limit)
		l.count = limit;
	*ret = l;
	return 0;
}

static bool is_unsettled(struct mem *m, const struct store_layer *l, const void *after)
{
	(void)m;
	return !l->durable && strcmp(l->id, after) > 0;
}

static int layer_unsettled(struct store *st, const char *after, unsigned limit,
			   struct store_layer_list *ret, struct err *err)
{
	return pick(mem_of(st), is_unsettled, after, compare_ids, limit, ret, err);
}

static int layer_ref(struct store *st, const char *id, const char *holder, struct err *err)
{
	struct mem *m = mem_of(st);
	struct mem_hold h = { 0 };

	if (check_text("holder", holder, err) < 0)
		return -1;
	if (!layer_by_id(m, id))
		return err_set(err, ERR_CONFLICT, "there is no layer %s", id);
	if (mem_first(&m->hold,
		      MEM_MATCH(MEM_IS(mem_hold, layer, id), MEM_IS(mem_hold, holder, holder))))
		return 0;
	snprintf(h.layer, sizeof(h.layer), "%s", id);
	snprintf(h.holder, sizeof(h.holder), "%s", holder);
	return mem_add(m, &m->hold, &h, err) ? 0 : -1;
}

static int layer_unref(struct store *st, const char *id, const char *holder, struct err *err)
{
	struct mem *m = mem_of(st);

	(void)err;
	mem_drop_all(m, &m->hold,
		     MEM_MATCH(MEM_IS(mem_hold, layer, id), MEM_IS(mem_hold, holder, holder)));
	return 0;
}

static int layer_release(struct store *st, const char *prefix, struct err *err)
{
	struct mem *m = mem_of(st);

	if (check_text("prefix of a holder", prefix, err) < 0)
		return -1;
	for (size_t i = m->hold.count; i-- > 0;)
		if (strncmp(((struct mem_hold *)m->hold.rows)[i].holder, prefix, strlen(prefix)) ==
		    0)
			mem_drop(m, &m->hold, i);
	return 0;
}

static int layer_refs(struct store *st, const char *id, int64_t *ret, struct err *err)
{
	(void)err;
	*ret = count_refs(mem_of(st), id);
	return 0;
}

static int compare_ages(const void *a, const void *b)
{
	const struct store_layer *x = a, *y = b;

	if (x->created_at != y->created_at)
		return x->created_at < y->created_at ? -1 : 1;
	return strcmp(x->id, y->id);
}

static bool is_unreferenced(struct mem *m, const struct store_layer *l, const void *before)
{
	/* one with a sandbox's name is sealed, and its session's record is about to say so */
	return l->created_at < *(const int64_t *)before && count_refs(m, l->id) == 0 &&
	       mem_count(&m->session, MEM_MATCH(MEM_IS(store_session, sandbox, l->id))) == 0;
}

static int layer_unreferenced(struct store *st, int64_t before, unsigned limit,
			      struct store_layer_list *ret, struct err *err)
{
	return pick(mem_of(st), is_unreferenced, &before, compare_ages, limit, ret, err);
}

static int layer_remove(struct store *st, const char *id, struct err *err)
{
	struct mem *m = mem_of(st);

	if (count_refs(m, id) > 0)
		return err_set(err, ERR_CONFLICT, "layer %s is in use", id);
	if (!mem_drop_all(m, &m->layer, MEM_MATCH(MEM_IS(store_layer, id, id))))
		return err_set(err, ERR_NOT_FOUND, "there is no layer %s", id);
	return 0;
}

const struct store_layer_ops memory_layer_ops = {
	.add = layer_add,
	.get = layer_get,
	.settle = layer_settle,
	.unsettled = layer_unsettled,
	.ref = layer_ref,
	.unref = layer_unref,
	.release = layer_release,
	.refs = layer_refs,
	.unreferenced = layer_unreferenced,
	.remove = layer_remove,
};

/* ---- snapshots ----------------------------------------------------------------------------- */

static void *snapshot_by_id(struct mem *m, const char *id)
{
	return mem_first(&m->snapshot, MEM_MATCH(MEM_IS(store_snapshot, id, id)));
}

static void *snapshot_by_name(struct mem *m, const char *session, const char *name)
{
	if (!session[0] || !name[0]) /* any number of them has none */
		return NULL;
	return mem_first(&m->snapshot, MEM_MATCH(MEM_IS(store_snapshot, session, session),
						 MEM_IS(store_snapshot, name, name)));
}

static int snapshot_add(struct store *st, struct store_snapshot *s, struct err *err)
{
	struct mem *m = mem_of(st);

	if (check_snapshot(s, err) < 0)
		return -1;
	if (snapshot_by_id(m, s->id) || snapshot_by_name(m, s->session, s->name))
		return err_set(err, ERR_CONFLICT, "snapshot %s is there already", s->id);
	if (!layer_by_id(m, s->layer))
		return err_set(err, ERR_CONFLICT, "there is no layer %s", s->layer);
	return mem_add_numbered(m, &m->snapshot, s, &s->seq, err) ? 0 : -1;
}

static int snapshot_get(struct store *st, const char *id, struct store_snapshot *ret,
			struct err *err)
{
	return mem_give(&mem_of(st)->snapshot, snapshot_by_id(mem_of(st), id), ret, "snapshot", id,
			err);
}

static int snapshot_find(struct store *st, const char *session, const char *name,
			 struct store_snapshot *ret, struct err *err)
{
	struct mem *m = mem_of(st);

	return mem_give(&m->snapshot, snapshot_by_name(m, session, name), ret, "snapshot", name,
			err);
}

/* Of this user's sessions, or of those that are gone. */
static bool is_of_user(struct mem *m, const void *row, const void *user)
{
	const struct store_snapshot *s = row;

	return mem_first(&m->session, MEM_MATCH(MEM_IS(store_session, id, s->session),
						MEM_IS(store_session, user, user))) ||
	       mem_first(&m->tombstone, MEM_MATCH(MEM_IS(store_tombstone, session, s->session),
						  MEM_IS(store_tombstone, user, user)));
}

static int snapshot_list(struct store *st, const struct store_snapshot_filter *f,
			 struct store_page page, struct store_snapshot_list *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_snapshot_list l = { 0 };
	void *items;

	if (check_snapshot_filter(f, err) < 0 ||
	    mem_page(m, &m->snapshot, page,
		     MEM_MATCH(MEM_IS(store_snapshot, tenant, f->tenant),
			       MEM_IS(store_snapshot, session, f->session)),
		     f->user ? is_of_user : NULL, f->user, &items, &l.count, &l.next, err) < 0)
		return -1;
	l.items = items;
	*ret = l;
	return 0;
}

static int snapshot_remove(struct store *st, const char *id, struct err *err)
{
	struct mem *m = mem_of(st);

	if (mem_first(&m->fragment, MEM_MATCH(MEM_IS(store_fragment, snapshot, id))))
		return err_set(err, ERR_CONFLICT, "snapshot %s is in use", id);
	if (!mem_drop_all(m, &m->snapshot, MEM_MATCH(MEM_IS(store_snapshot, id, id))))
		return err_set(err, ERR_NOT_FOUND, "there is no snapshot %s", id);
	return 0;
}

const struct store_snapshot_ops memory_snapshot_ops = {
	.add = snapshot_add,
	.get = snapshot_get,
	.find = snapshot_find,
	.list = snapshot_list,
	.remove = snapshot_remove,
};
