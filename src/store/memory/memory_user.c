/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "store/record_check.h"
#include "store/memory/memory.h"

/* ---- users --------------------------------------------------------------------------------- */

static struct store_user *user_by_id(struct mem *m, const char *tenant, const char *id)
{
	return mem_first(&m->user,
			 MEM_MATCH(MEM_IS(store_user, tenant, tenant), MEM_IS(store_user, id, id)));
}

int memory_user_put(struct mem *m, const struct store_user *u, struct err *err)
{
	struct store_user *row, new = *u;

	if (check_user(u, err) < 0)
		return -1;
	row = user_by_id(m, u->tenant, u->id);
	if (!row)
		return mem_add_numbered(m, &m->user, u, &new.seq, err) ? 0 : -1;
	new.seq = row->seq;
	new.created_at = row->created_at;
	*row = new;
	m->changes++;
	return 0;
}

static int user_put(struct store *st, const struct store_user *u, struct err *err)
{
	return memory_user_put(mem_of(st), u, err);
}

static int user_get(struct store *st, const char *tenant, const char *id, struct store_user *ret,
		    struct err *err)
{
	return mem_give(&mem_of(st)->user, user_by_id(mem_of(st), tenant, id), ret, "user", id,
			err);
}

static int user_list(struct store *st, const char *tenant, struct store_page page,
		     struct store_user_list *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_user_list l = { 0 };
	void *items;

	if (mem_page(m, &m->user, page, MEM_MATCH(MEM_IS(store_user, tenant, tenant)), NULL, NULL,
		     &items, &l.count, &l.next, err) < 0)
		return -1;
	l.items = items;
	*ret = l;
	return 0;
}

const struct store_user_ops memory_user_ops = {
	.put = user_put,
	.get = user_get,
	.list = user_list,
};

/* ---- teams --------------------------------------------------------------------------------- */

static struct store_member *member_by_id(struct mem *m, const char *tenant, const char *team,
					 const char *user)
{
	return mem_first(&m->member, MEM_MATCH(MEM_IS(store_member, tenant, tenant),
					       MEM_IS(store_member, team, team),
					       MEM_IS(store_member, user, user)));
}

static int team_put(struct store *st, const struct store_member *mb, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_member *row;

	if (check_member(mb, err) < 0)
		return -1;
	row = member_by_id(m, mb->tenant, mb->team, mb->user);
	if (!row)
		return mem_add(m, &m->member, mb, err) ? 0 : -1;
	row->role = mb->role;
	m->changes++;
	return 0;
}

static int team_get(struct store *st, const char *tenant, const char *team, const char *user,
		    struct store_member *ret, struct err *err)
{
	return mem_give(&mem_of(st)->member, member_by_id(mem_of(st), tenant, team, user), ret,
			"member", user, err);
}

static int compare_members(const void *a, const void *b)
{
	const struct store_member *x = a, *y = b;

	return strcmp(x->user, y->user);
}

static int team_list(struct store *st, const char *tenant, const char *team,
		     struct store_member_list *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_member_list l = { 0 };
	const struct store_member *row;

	l.items = calloc(m->member.count + 1, sizeof(*l.items));
	if (!l.items)
		return err_set(err, ERR_LIMIT, "no memory for a list of members");
	for (size_t at = 0; (row = mem_find(&m->member, &at,
					    MEM_MATCH(MEM_IS(store_member, tenant, tenant),
						      MEM_IS(store_member, team, team))));
	     at++)
		l.items[l.count++] = *row;
	qsort(l.items, l.count, sizeof(*l.items), compare_members);
	*ret = l;
	return 0;
}

static int team_remove(struct store *st, const char *tenant, const char *team, const char *user,
		       struct err *err)
{
	struct mem *m = mem_of(st);

	if (!mem_drop_all(m, &m->member,
			  MEM_MATCH(MEM_IS(store_member, tenant, tenant),
				    MEM_IS(store_member, team, team),
				    MEM_IS(store_member, user, user))))
		return err_set(err, ERR_NOT_FOUND, "%s is not in team %s", user, team);
	return 0;
}

const struct store_team_ops memory_team_ops = {
	.put = team_put,
	.get = team_get,
	.list = team_list,
	.remove = team_remove,
};

/* ---- keys ---------------------------------------------------------------------------------- */

static struct store_key *key_by_hash(struct mem *m, const uint8_t hash[STORE_HASH])
{
	struct store_key *rows = (struct store_key *)m->key.rows;

	for (size_t i = 0; i < m->key.count; i++)
		if (memcmp(rows[i].hash, hash, STORE_HASH) == 0)
			return &rows[i];
	return NULL;
}

static int api_key_add(struct store *st, struct store_key *k, struct err *err)
{
	struct mem *m = mem_of(st);

	if (check_key(k, err) < 0)
		return -1;
	if (mem_first(&m->key, MEM_MATCH(MEM_IS(store_key, id, k->id))) || key_by_hash(m, k->hash))
		return err_set(err, ERR_CONFLICT, "key %s is there already", k->id);
	return mem_add_numbered(m, &m->key, k, &k->seq, err) ? 0 : -1;
}

static int api_key_find(struct store *st, const uint8_t hash[STORE_HASH], struct store_key *ret,
			struct err *err)
{
	return mem_give(&mem_of(st)->key, key_by_hash(mem_of(st), hash), ret, "such", "key", err);
}

static int api_key_list(struct store *st, const char *tenant, struct store_page page,
			struct store_key_list *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_key_list l = { 0 };
	void *items;

	if (check_filter("tenant", tenant, err) < 0 ||
	    mem_page(m, &m->key, page, MEM_MATCH(MEM_IS(store_key, tenant, tenant)), NULL, NULL,
		     &items, &l.count, &l.next, err) < 0)
		return -1;
	l.items = items;
	*ret = l;
	return 0;
}

static int api_key_remove(struct store *st, const char *id, struct err *err)
{
	struct mem *m = mem_of(st);

	if (!mem_drop_all(m, &m->key, MEM_MATCH(MEM_IS(store_key, id, id))))
		return err_set(err, ERR_NOT_FOUND, "there is no key %s", id);
	return 0;
}

const struct store_key_ops memory_key_ops = {
	.add = api_key_add,
	.find = api_key_find,
	.list = api_key_list,
	.remove = api_key_remove,
};
