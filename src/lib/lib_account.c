/* SPDX-License-Identifier: Apache-2.0 */
/* Events and quotas. */
#include "lib/lib_convert.h"
#include "lib/lib_opts.h"
#include "admit/quota.h"

PUBLIC int lodge_events_since(struct lodge *l, int64_t since, const char *session, uint32_t limit,
			      struct lodge_events **ret)
{
	struct store_event_list list = { 0 };

	if (engine_events(l->engine, since, l->tenant, session, lib_get_page(0, limit).limit, &list,
			  &last) < 0)
		return -1;
	return lib_put_events(&list, ret);
}

PUBLIC int lodge_quota_set(struct lodge *l, const char *user, const struct lodge_quota *quota)
{
	struct store_quota s = { 0 };
	struct lodge_quota q;

	if (TAKE(lodge_quota, quota, &q) < 0 ||
	    lib_get_text("tenant", l->tenant, s.tenant, sizeof(s.tenant)) < 0 ||
	    lib_get_text("user", user, s.user, sizeof(s.user)) < 0)
		return -1;
	s.sandboxes = q.sandboxes;
	s.memory_bytes = q.memory_bytes;
	s.disk_bytes = q.disk_bytes;
	s.cpu_ms = q.cpu_ms;
	return quota_set(l->engine, &s, &last);
}

PUBLIC int lodge_quota_get(struct lodge *l, const char *user, struct lodge_usage **ret)
{
	struct {
		struct lodge_usage pub;
		struct lodge_quota quota;
	} * b;
	struct store_quota q;
	struct store_usage u;

	if (quota_get(l->engine, l->tenant, user ? user : "", &q, &u, &last) < 0)
		return -1;
	b = box_new(sizeof(*b), NULL);
	if (!b)
		return -1;
	b->quota = (struct lodge_quota){ .size = sizeof(b->quota),
					 .sandboxes = q.sandboxes,
					 .memory_bytes = q.memory_bytes,
					 .disk_bytes = q.disk_bytes,
					 .cpu_ms = q.cpu_ms };
	b->pub = (struct lodge_usage){ .quota = &b->quota,
				       .sessions = u.sessions,
				       .disk_bytes = u.disk_bytes,
				       .active = u.active,
				       .memory_bytes = u.memory_bytes,
				       .cpu_ms = u.cpu_ms };
	*ret = &b->pub;
	return 0;
}
