/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "store/record_check.h"
#include "store/memory/memory.h"

/* ---- events -------------------------------------------------------------------------------- */

static int event_append(struct store *st, struct store_event *e, struct err *err)
{
	struct mem *m = mem_of(st);

	if (check_event(e, err) < 0)
		return -1;
	return mem_add_numbered(m, &m->event, e, &e->id, err) ? 0 : -1;
}

static int event_since(struct store *st, int64_t id, const char *tenant, const char *session,
		       unsigned limit, struct store_event_list *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_event_list l = { 0 };
	void *items;

	if (check_filter("tenant", tenant, err) < 0 || check_filter("session", session, err) < 0 ||
	    mem_page(m, &m->event, (struct store_page){ .after = id, .limit = limit },
		     MEM_MATCH(MEM_IS(store_event, tenant, tenant),
			       MEM_IS(store_event, session, session)),
		     NULL, NULL, &items, &l.count, &l.next, err) < 0)
		return -1;
	l.items = items;
	*ret = l;
	return 0;
}

static int event_last(struct store *st, int64_t *ret, struct err *err)
{
	(void)err;
	*ret = mem_of(st)->event.seq;
	return 0;
}

static int event_prune(struct store *st, int64_t before, struct err *err)
{
	struct mem *m = mem_of(st);

	(void)err;
	for (size_t i = m->event.count; i-- > 0;)
		if (((struct store_event *)m->event.rows)[i].cause.at < before)
			mem_drop(m, &m->event, i);
	return 0;
}

const struct store_event_ops memory_event_ops = {
	.append = event_append,
	.since = event_since,
	.last = event_last,
	.prune = event_prune,
};

/* ---- tombstones ---------------------------------------------------------------------------- */

static int tombstone_get(struct store *st, const char *session, struct store_tombstone *ret,
			 struct err *err)
{
	struct mem *m = mem_of(st);

	return mem_give(
		&m->tombstone,
		mem_first(&m->tombstone, MEM_MATCH(MEM_IS(store_tombstone, session, session))), ret,
		"tombstone of session", session, err);
}

static int tombstone_find(struct store *st, const char *tenant, const struct store_binding *by,
			  struct store_tombstone *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	struct mem_binding *b, *last = NULL;

	for (size_t at = 0; (b = mem_find(&m->tombstone_key, &at,
					  MEM_MATCH(MEM_IS(mem_binding, tenant, tenant),
						    MEM_IS(mem_binding, key.kind, by->kind),
						    MEM_IS(mem_binding, key.key, by->key))));
	     at++)
		last = b;
	if (!last)
		return err_set(err, ERR_NOT_FOUND, "there is no tombstone of %s", by->key);
	return tombstone_get(st, last->session, ret, err);
}

static int tombstone_prune(struct store *st, int64_t before, struct err *err)
{
	struct mem *m = mem_of(st);

	(void)err;
	for (size_t i = m->tombstone.count; i-- > 0;) {
		struct store_tombstone *t = &((struct store_tombstone *)m->tombstone.rows)[i];

		if (t->cause.at >= before)
			continue;
		mem_drop_all(m, &m->tombstone_key,
			     MEM_MATCH(MEM_IS(mem_binding, session, t->session)));
		mem_drop(m, &m->tombstone, i);
	}
	return 0;
}

const struct store_tombstone_ops memory_tombstone_ops = {
	.get = tombstone_get,
	.find = tombstone_find,
	.prune = tombstone_prune,
};
