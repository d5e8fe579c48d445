/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "store/record_check.h"
#include "store/memory/memory.h"

static int quota_set(struct store *st, const struct store_quota *q, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_quota *row;

	if (check_text("tenant", q->tenant, err) < 0)
		return -1;
	row = mem_first(&m->quota, MEM_MATCH(MEM_IS(store_quota, tenant, q->tenant),
					     MEM_IS(store_quota, user, q->user)));
	if (!row)
		return mem_add(m, &m->quota, q, err) ? 0 : -1;
	*row = *q;
	m->changes++;
	return 0;
}

static int quota_get(struct store *st, const char *tenant, const char *user,
		     struct store_quota *ret, struct err *err)
{
	struct mem *m = mem_of(st);

	return mem_give(&m->quota,
			mem_first(&m->quota, MEM_MATCH(MEM_IS(store_quota, tenant, tenant),
						       MEM_IS(store_quota, user, user))),
			ret, "quota of", user, err);
}

static int quota_charge(struct store *st, const char *tenant, const char *user, int64_t cpu_ms,
			struct err *err)
{
	struct mem *m = mem_of(st);
	struct mem_cpu new = { .ms = cpu_ms }, *row;

	if (check_text("tenant", tenant, err) < 0)
		return -1;
	row = mem_first(&m->cpu,
			MEM_MATCH(MEM_IS(mem_cpu, tenant, tenant), MEM_IS(mem_cpu, user, user)));
	if (row) {
		row->ms += cpu_ms;
		m->changes++;
		return 0;
	}
	snprintf(new.tenant, sizeof(new.tenant), "%s", tenant);
	snprintf(new.user, sizeof(new.user), "%s", user);
	return mem_add(m, &m->cpu, &new, err) ? 0 : -1;
}

static int quota_usage(struct store *st, const char *tenant, const char *user, uint64_t states,
		       struct store_usage *ret, struct err *err)
{
	struct mem *m = mem_of(st);
	struct store_usage u = { 0 };
	const struct store_session *s;
	const struct mem_cpu *c;

	if (check_filter("tenant", tenant, err) < 0 || check_filter("user", user, err) < 0)
		return -1;
	for (size_t at = 0; (s = mem_find(&m->session, &at,
					  MEM_MATCH(MEM_IS(store_session, tenant, tenant),
						    MEM_IS(store_session, user, user))));
	     at++) {
		u.sessions++;
		u.disk_bytes += s->disk_bytes;
		if (states & 1ull << s->state) {
			u.active++;
			u.memory_bytes += s->memory_bytes;
		}
	}
	for (size_t at = 0; (c = mem_find(&m->cpu, &at,
					  MEM_MATCH(MEM_IS(mem_cpu, tenant, tenant),
						    MEM_IS(mem_cpu, user, user))));
	     at++)
		u.cpu_ms += c->ms;
	*ret = u;
	return 0;
}

const struct store_quota_ops memory_quota_ops = {
	.set = quota_set,
	.get = quota_get,
	.charge = quota_charge,
	.usage = quota_usage,
};
