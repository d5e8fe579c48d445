/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "store/record_check.h"
#include "store/memory/memory.h"

static struct store_policy *by_name(struct mem *m, const char *tenant, const char *name)
{
	return mem_first(&m->policy, MEM_MATCH(MEM_IS(store_policy, tenant, tenant),
					       MEM_IS(store_policy, name, name)));
}

static int policy_add(struct store *st, struct store_policy *p, struct err *err)
{
	struct mem *m = mem_of(st);

	if (check_policy(p, err) < 0)
		return -1;
	if (by_name(m, p->tenant, p->name))
		return err_set(err, ERR_CONFLICT, "policy %s is there already", p->name);
	return mem_add_numbered(m, &m->policy, p, &p->seq, err) ? 0 : -1;
}

static int policy_update(struct store *st, const struct store_policy *p, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_policy *row = by_name(m, p->tenant, p->name), new;

	if (check_policy(p, err) < 0)
		return -1;
	if (!row)
		return err_set(err, ERR_NOT_FOUND, "there is no policy %s", p->name);
	if (columns_copy(&shape_policy, p, &new, err) < 0)
		return -1;
	new.seq = row->seq;
	new.created_at = row->created_at;
	columns_fini(&shape_policy, row);
	*row = new;
	m->changes++;
	return 0;
}

static int policy_get(struct store *st, const char *tenant, const char *name,
		      struct store_policy *ret, struct err *err)
{
	return mem_give(&mem_of(st)->policy, by_name(mem_of(st), tenant, name), ret, "policy", name,
			err);
}

static int policy_list(struct store *st, const char *tenant, struct store_page page,
		       struct store_policy_list *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_policy_list l = { 0 };
	void *items;

	if (check_filter("tenant", tenant, err) < 0 ||
	    mem_page(m, &m->policy, page, MEM_MATCH(MEM_IS(store_policy, tenant, tenant)), NULL,
		     NULL, &items, &l.count, &l.next, err) < 0)
		return -1;
	l.items = items;
	*ret = l;
	return 0;
}

static int policy_remove(struct store *st, const char *tenant, const char *name, struct err *err)
{
	struct mem *m = mem_of(st);
	int64_t users = mem_count(&m->session, MEM_MATCH(MEM_IS(store_session, tenant, tenant),
							 MEM_IS(store_session, policy, name)));

	if (users)
		return err_set(err, ERR_CONFLICT, "policy %s is in use by %lld session%s", name,
			       (long long)users, users == 1 ? "" : "s");
	if (!mem_drop_all(m, &m->policy,
			  MEM_MATCH(MEM_IS(store_policy, tenant, tenant),
				    MEM_IS(store_policy, name, name))))
		return err_set(err, ERR_NOT_FOUND, "there is no policy %s", name);
	return 0;
}

const struct store_policy_ops memory_policy_ops = {
	.add = policy_add,
	.update = policy_update,
	.get = policy_get,
	.list = policy_list,
	.remove = policy_remove,
};
