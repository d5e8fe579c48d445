/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/record_check.h"
#include "store/memory/memory.h"

/* ---- reading ------------------------------------------------------------------------------- */

static struct store_session *by_id(struct mem *m, const char *id)
{
	return mem_first(&m->session, MEM_MATCH(MEM_IS(store_session, id, id)));
}

static struct mem_binding *by_key(const struct mem_table *t, const char *tenant,
				  const struct store_binding *b)
{
	return mem_first(t, MEM_MATCH(MEM_IS(mem_binding, tenant, tenant),
				      MEM_IS(mem_binding, key.kind, b->kind),
				      MEM_IS(mem_binding, key.key, b->key)));
}

static int compare_bindings(const void *a, const void *b)
{
	const struct store_binding *x = a, *y = b;
	int kind = strcmp(x->kind, y->kind);

	return kind ? kind : strcmp(x->key, y->key);
}

static int copy_bindings(struct mem *m, struct store_session *s, struct err *err)
{
	struct mem_binding *b;

	s->bindings = NULL;
	s->nbindings = 0;
	for (size_t at = 0;
	     (b = mem_find(&m->binding, &at, MEM_MATCH(MEM_IS(mem_binding, session, s->id))));
	     at++) {
		struct store_binding *grown =
			columns_grow(s->bindings, s->nbindings, sizeof(*grown));

		if (!grown)
			return err_sys(err, ENOMEM, "session %s", s->id);
		s->bindings = grown;
		s->bindings[s->nbindings++] = b->key;
	}
	if (s->nbindings > 0)
		qsort(s->bindings, s->nbindings, sizeof(*s->bindings), compare_bindings);
	return 0;
}

static int give(struct mem *m, const struct store_session *row, const char *what, const char *name,
		struct store_session *ret, struct err *err)
{
	struct store_session s = { 0 };

	if (mem_give(&m->session, row, &s, what, name, err) < 0)
		return -1;
	if (copy_bindings(m, &s, err) < 0) {
		store_session_fini(&s);
		return -1;
	}
	*ret = s;
	return 0;
}

static int session_get(struct store *st, const char *id, struct store_session *ret, struct err *err)
{
	return give(mem_of(st), by_id(mem_of(st), id), "session", id, ret, err);
}

static int session_find(struct store *st, const char *tenant, const struct store_binding *by,
			struct store_session *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	struct mem_binding *b = by_key(&m->binding, tenant, by);

	return give(m, b ? by_id(m, b->session) : NULL, "session of", by->key, ret, err);
}

static int add_all_bindings(struct mem *m, struct store_session_list *l, struct err *err)
{
	for (size_t i = 0; i < l->count; i++)
		if (copy_bindings(m, &l->items[i], err) < 0) {
			store_session_list_fini(l);
			return -1;
		}
	return 0;
}

static bool passes(struct mem *m, const void *row, const void *arg)
{
	const struct store_session_filter *f = arg;
	const struct store_session *s = row;

	(void)m;
	if (f->states && !(f->states & 1ull << s->state))
		return false;
	return !f->meta_key || check_has_member(s->metadata, f->meta_key, f->meta_value);
}

static int session_list(struct store *st, const struct store_session_filter *f,
			struct store_page page, struct store_session_list *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_session_list l = { 0 };
	void *items;

	if (check_session_filter(f, err) < 0 ||
	    mem_page(m, &m->session, page,
		     MEM_MATCH(MEM_IS(store_session, tenant, f->tenant),
			       MEM_IS(store_session, user, f->user),
			       MEM_IS(store_session, project, f->project),
			       MEM_IS(store_session, template, f->template),
			       MEM_IS(store_session, policy, f->policy)),
		     passes, f, &items, &l.count, &l.next, err) < 0)
		return -1;
	l.items = items;
	if (add_all_bindings(m, &l, err) < 0)
		return -1;
	*ret = l;
	return 0;
}

static int session_count(struct store *st, const struct store_session_filter *f, int64_t *ret,
			 struct err *err)
{
	struct mem *m = mem_of(st);
	const struct store_session *row;
	int64_t n = 0;

	if (check_session_filter(f, err) < 0)
		return -1;
	for (size_t at = 0; (row = mem_find(&m->session, &at,
					    MEM_MATCH(MEM_IS(store_session, tenant, f->tenant),
						      MEM_IS(store_session, user, f->user),
						      MEM_IS(store_session, project, f->project),
						      MEM_IS(store_session, template, f->template),
						      MEM_IS(store_session, policy, f->policy))));
	     at++)
		n += passes(m, row, f);
	*ret = n;
	return 0;
}

static int compare_due(const void *a, const void *b)
{
	const struct store_session *x = *(struct store_session *const *)a;
	const struct store_session *y = *(struct store_session *const *)b;

	if (x->due_at != y->due_at)
		return x->due_at < y->due_at ? -1 : 1;
	return x->seq < y->seq ? -1 : 1;
}

/* The rows that are due, in order. */
static int collect_due(struct mem *m, int64_t now, struct store_session ***ret, size_t *ret_count,
		       struct err *err)
{
	struct store_session *rows = (struct store_session *)m->session.rows;
	struct store_session **due = calloc(m->session.count + 1, sizeof(struct store_session *));
	size_t count = 0;

	if (!due)
		return err_sys(err, ENOMEM, "what is due");
	for (size_t i = 0; i < m->session.count; i++)
		if (rows[i].due_at > 0 && rows[i].due_at <= now)
			due[count++] = &rows[i];
	qsort(due, count, sizeof(struct store_session *), compare_due);
	*ret = due;
	*ret_count = count;
	return 0;
}

static int session_due(struct store *st, int64_t now, unsigned limit,
		       struct store_session_list *ret, struct err *err)
{
	auto_free struct store_session **due = NULL;
	struct store_session_list l = { 0 };
	size_t count = 0;

	if (check_page((struct store_page){ .limit = limit }, err) < 0 ||
	    collect_due(mem_of(st), now, &due, &count, err) < 0)
		return -1;
	l.items = calloc(limit, sizeof(*l.items));
	if (!l.items)
		return err_sys(err, ENOMEM, "what is due");
	for (; l.count < limit && l.count < count; l.count++)
		if (session_get(st, due[l.count]->id, &l.items[l.count], err) < 0) {
			store_session_list_fini(&l);
			return -1;
		}
	*ret = l;
	return 0;
}

struct deep {
	uint64_t states;
	unsigned depth;
};

static bool is_deep(struct mem *m, const void *row, const void *arg)
{
	const struct store_session *s = row;
	const struct deep *d = arg;
	const char *at = s->layer;
	unsigned n = 0;

	if (!(d->states >> s->state & 1))
		return false;
	while (*at && n <= d->depth) {
		const struct store_layer *l =
			mem_first(&m->layer, MEM_MATCH(MEM_IS(store_layer, id, at)));

		n++;
		at = l ? l->parent : "";
	}
	return n > d->depth;
}

static int session_deep(struct store *st, uint64_t states, unsigned depth, unsigned limit,
			struct store_session_list *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	struct deep d = { states, depth };
	struct store_session_list l = { 0 };
	int64_t next;
	void *items;

	if (mem_page(m, &m->session, (struct store_page){ .limit = limit }, NULL, 0, is_deep, &d,
		     &items, &l.count, &next, err) < 0)
		return -1;
	l.items = items;
	if (add_all_bindings(m, &l, err) < 0)
		return -1;
	*ret = l;
	return 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

static int add_event(struct mem *m, const struct store_session *s, int64_t version,
		     const struct store_event *ev, struct err *err)
{
	struct store_event e;
	int64_t id;

	if (!ev)
		return 0;
	e = *ev; /* shares ev->data, which is copied */
	memcpy(e.tenant, s->tenant, sizeof(e.tenant));
	memcpy(e.session, s->id, sizeof(e.session));
	e.version = version;
	return mem_add_numbered(m, &m->event, &e, &id, err) ? 0 : -1;
}

static int bind_key(struct mem *m, const char *tenant, const struct store_binding *b,
		    const char *session, struct err *err)
{
	struct mem_binding row = { .key = *b };
	const struct store_session *s = by_id(m, session);

	if (by_key(&m->binding, tenant, b))
		return err_set(err, ERR_CONFLICT, "%s %s is taken", b->kind, b->key);
	if (!s || strcmp(s->tenant, tenant) != 0)
		return err_set(err, ERR_CONFLICT, "there is no session %s", session);
	memcpy(row.tenant, s->tenant, sizeof(row.tenant));
	memcpy(row.session, s->id, sizeof(row.session));
	return mem_add(m, &m->binding, &row, err) ? 0 : -1;
}

static int find_layer(struct mem *m, const struct store_session *s, struct err *err)
{
	if (s->layer[0] && !mem_first(&m->layer, MEM_MATCH(MEM_IS(store_layer, id, s->layer))))
		return err_set(err, ERR_CONFLICT, "there is no layer %s", s->layer);
	return 0;
}

static int insert(struct mem *m, const struct store_session *s, const struct store_event *ev,
		  int64_t *ret_seq, struct err *err)
{
	struct store_session *row = mem_add_numbered(m, &m->session, s, ret_seq, err);

	if (!row)
		return -1;
	row->version = 1;
	row->bindings = NULL; /* those are in a table of their own */
	row->nbindings = 0;
	for (size_t i = 0; i < s->nbindings; i++)
		if (bind_key(m, s->tenant, &s->bindings[i], s->id, err) < 0)
			return -1;
	return add_event(m, s, 1, ev, err);
}

static int find_policy(struct mem *m, const struct store_session *s, struct err *err)
{
	if (!*s->policy || mem_first(&m->policy, MEM_MATCH(MEM_IS(store_policy, tenant, s->tenant),
							   MEM_IS(store_policy, name, s->policy))))
		return 0;
	return err_set(err, ERR_CONFLICT, "session %s: there is no policy %s", s->id, s->policy);
}

static int insert_session(struct store *st, struct store_session *s, const struct store_event *ev,
			  struct err *err)
{
	struct mem *m = mem_of(st);
	size_t sessions = m->session.count, bindings = m->binding.count;
	int64_t seq;

	if (check_session(s, err) < 0 || (ev && check_event(ev, err) < 0) ||
	    find_layer(m, s, err) < 0 || find_policy(m, s, err) < 0)
		return -1;
	if (by_id(m, s->id))
		return err_set(err, ERR_CONFLICT, "session %s is there already", s->id);
	if (insert(m, s, ev, &seq, err) < 0) {
		mem_cut(&m->session, sessions);
		mem_cut(&m->binding, bindings);
		return -1;
	}
	s->seq = seq;
	s->version = 1;
	return 0;
}

static int write_session(struct store *st, struct store_session *s, const struct store_event *ev,
			 struct store_session *ret_now, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_session *row = by_id(m, s->id), copy;

	if (check_session(s, err) < 0)
		return -1;
	if (!row)
		return err_set(err, ERR_NOT_FOUND, "there is no session %s", s->id);
	if (row->version != s->version) {
		if (ret_now && session_get(st, s->id, ret_now, err) < 0)
			return -1;
		return err_set(err, ERR_CONFLICT, "session %s is at version %lld, not %lld", s->id,
			       (long long)row->version, (long long)s->version);
	}
	if (find_layer(m, s, err) < 0 || (ev && check_event(ev, err) < 0) ||
	    columns_copy(&shape_session, s, &copy, err) < 0)
		return -1;
	if (add_event(m, s, s->version + 1, ev, err) < 0) {
		columns_fini(&shape_session, &copy);
		return -1;
	}
	memcpy(copy.tenant, row->tenant, sizeof(copy.tenant)); /* what never changes */
	memcpy(copy.user, row->user, sizeof(copy.user));
	copy.created_at = row->created_at;
	copy.seq = row->seq;
	copy.bindings = NULL;
	copy.nbindings = 0;
	copy.version = ++s->version;
	columns_fini(&shape_session, row);
	*row = copy;
	m->changes++;
	return 0;
}

static int update_session(struct store *st, struct store_session *s, const struct store_event *ev,
			  struct store_session *ret_now, struct err *err)
{
	return write_session(st, s, ev, ret_now, err);
}

/* The tombstone with its keys, ahead of the change that it goes with. */
static int add_tombstone(struct mem *m, const struct store_session *s, struct err *err)
{
	struct store_tombstone t = { .created_at = s->created_at, .cause = s->cause };
	struct mem_binding *b;

	memcpy(t.session, s->id, sizeof(t.session));
	memcpy(t.tenant, s->tenant, sizeof(t.tenant));
	memcpy(t.user, s->user, sizeof(t.user));
	if (!mem_first(&m->tombstone, MEM_MATCH(MEM_IS(store_tombstone, session, s->id))) &&
	    !mem_add(m, &m->tombstone, &t, err))
		return -1;
	for (size_t at = 0;
	     (b = mem_find(&m->binding, &at, MEM_MATCH(MEM_IS(mem_binding, session, s->id)))); at++)
		if (!mem_add(m, &m->tombstone_key, b, err))
			return -1;
	return 0;
}

static int session_bury(struct store *st, struct store_session *s, const struct store_event *ev,
			struct store_session *ret_now, struct err *err)
{
	struct mem *m = mem_of(st);
	size_t tombstones = m->tombstone.count, keys = m->tombstone_key.count;

	if (add_tombstone(m, s, err) < 0 || write_session(st, s, ev, ret_now, err) < 0) {
		mem_cut(&m->tombstone, tombstones);
		mem_cut(&m->tombstone_key, keys);
		return -1;
	}
	mem_drop_all(m, &m->binding, MEM_MATCH(MEM_IS(mem_binding, session, s->id)));
	return 0;
}

static int session_remove(struct store *st, const char *id, struct err *err)
{
	struct mem *m = mem_of(st);

	if (mem_first(&m->binding, MEM_MATCH(MEM_IS(mem_binding, session, id))))
		return err_set(err, ERR_CONFLICT, "session %s still has keys", id);
	if (!mem_drop_all(m, &m->session, MEM_MATCH(MEM_IS(store_session, id, id))))
		return err_set(err, ERR_NOT_FOUND, "there is no session %s", id);
	return 0;
}

static int session_retract(struct store *st, const struct store_session *s,
			   const struct store_event *ev, struct err *err)
{
	struct mem *m = mem_of(st);

	if (check_session(s, err) < 0 || (ev && check_event(ev, err) < 0))
		return -1;
	if (!by_id(m, s->id) || by_id(m, s->id)->version != s->version)
		return err_set(err, ERR_NOT_FOUND, "there is no session %s as it was", s->id);
	if (add_event(m, s, s->version, ev, err) < 0)
		return -1;
	mem_drop_all(m, &m->binding, MEM_MATCH(MEM_IS(mem_binding, session, s->id)));
	mem_drop_all(m, &m->session, MEM_MATCH(MEM_IS(store_session, id, s->id)));
	return 0;
}

static int move_key(struct mem *m, const char *tenant, const struct store_binding *key,
		    const char *from, const char *to, struct err *err)
{
	struct mem_binding *b = by_key(&m->binding, tenant, key);
	struct store_session *new = to ? by_id(m, to) : NULL;

	if (from && (!b || strcmp(b->session, from) != 0))
		return err_set(err, ERR_CONFLICT, "%s %s does not lead to session %s", key->kind,
			       key->key, from);
	if (to && (!new || strcmp(new->tenant, tenant) != 0))
		return err_set(err, ERR_CONFLICT, "there is no session %s", to);
	if (!from)
		return to ? bind_key(m, tenant, key, to, err) : 0;
	if (to)
		memcpy(b->session, new->id, sizeof(b->session));
	else
		mem_drop_all(m, &m->binding,
			     MEM_MATCH(MEM_IS(mem_binding, tenant, tenant),
				       MEM_IS(mem_binding, key.kind, key->kind),
				       MEM_IS(mem_binding, key.key, key->key)));
	m->changes++;
	return 0;
}

static int session_rebind(struct store *st, const char *tenant, const struct store_binding *key,
			  const char *from, const char *to, const struct store_user *u,
			  struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_user was;
	bool known;

	if (check_binding(key, err) < 0)
		return -1;
	known = u && m->store.user->get(st, u->tenant, u->id, &was, err) == 0;
	if (u && memory_user_put(m, u, err) < 0)
		return -1;
	if (move_key(m, tenant, key, from, to, err) < 0) {
		struct err ignored;

		if (known)
			memory_user_put(m, &was, &ignored);
		else if (u)
			mem_cut(&m->user, m->user.count - 1);
		return -1;
	}
	if (from)
		by_id(m, from)->version++;
	if (to)
		by_id(m, to)->version++;
	return 0;
}

const struct store_session_ops memory_session_ops = {
	.create = insert_session,
	.get = session_get,
	.find = session_find,
	.update = update_session,
	.bury = session_bury,
	.remove = session_remove,
	.retract = session_retract,
	.rebind = session_rebind,
	.list = session_list,
	.count = session_count,
	.due = session_due,
	.deep = session_deep,
};
