/* SPDX-License-Identifier: Apache-2.0 */
/* Events, limits and quotas. */
#include <errno.h>
#include <stdlib.h>

#include "lib/lib_convert.h"
#include "lib/lib_opts.h"
#include "admit/quota.h"
#include "engine/keeper_conn.h"
#include "sandbox/template/template_json.h"
#include "session/session_spec.h"

PUBLIC int lodge_events_since(struct lodge *l, int64_t since, const char *session, uint32_t limit,
			      struct lodge_events **ret)
{
	struct store_event_list list = { 0 };

	if (engine_events(l->engine, since, l->tenant, session, lib_get_page(0, limit).limit, &list,
			  &last) < 0)
		return -1;
	return lib_put_events(&list, ret);
}

/* ---- limits ---------------------------------------------------------------------------------- */

enum { LIMITS_JSON = 16 << 10 };

struct limits_box {
	struct lodge_limits_state pub;
	struct lodge_limits limits;
	char *not_enforced;
};

static void limits_box_fini(void *body)
{
	free(((struct limits_box *)body)->not_enforced);
}

static char *list_not_enforced(struct engine *e, const struct limits *l)
{
	struct template t = { .limits = *l, .limits_set = UINT32_MAX };
	struct enforcement f;
	struct json_out j;
	size_t len;

	keeper_conn_enforcement(e, &f);
	json_out_init(&j, LIMITS_JSON);
	template_put_not_enforced(&j, NULL, &f, KEEPER_STORE_DISK, &t);
	return json_out_take(&j, &len);
}

static int put_limits(struct engine *e, const struct limits *l, struct lodge_limits_state **ret)
{
	struct limits_box *b = box_new(sizeof(*b), limits_box_fini);

	if (!b)
		return -1;
	b->not_enforced = list_not_enforced(e, l);
	if (!b->not_enforced) {
		lodge_free(b);
		return err_sys(&last, ENOMEM, "limits");
	}
	b->limits = (struct lodge_limits){ .size = sizeof(b->limits),
					   .memory_bytes = l->memory_bytes,
					   .disk_bytes = l->disk_bytes,
					   .inodes = l->inodes,
					   .file_bytes = l->file_bytes,
					   .output_bytes = l->output_bytes,
					   .cpu_milli = l->cpu_milli,
					   .cpu_weight = l->cpu_weight,
					   .pids = l->pids,
					   .open_files = l->open_files };
	b->pub = (struct lodge_limits_state){ &b->limits, b->not_enforced };
	*ret = &b->pub;
	return 0;
}

PUBLIC int lodge_limits_get(struct lodge *l, const struct lodge_ref *ref,
			    struct lodge_limits_state **ret)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct session_ref r;
	struct limits limits;

	if (lib_get_ref(ref, &r) < 0 || session_get(l->engine, &l->caller, &r, &s, &last) < 0)
		return -1;
	session_limits(l->engine, &s, &limits);
	return put_limits(l->engine, &limits, ret);
}

/* ---- quotas ---------------------------------------------------------------------------------- */

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
