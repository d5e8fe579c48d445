/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: entering, reading, changing. */
#include <errno.h>
#include <string.h>

#include "lib/lib_convert.h"
#include "lib/lib_opts.h"

_Static_assert((int)LODGE_DEMAND_CGROUP == (int)KEEPER_DEMAND_CGROUP &&
		       (int)LODGE_DEMAND_DISK == (int)KEEPER_DEMAND_DISK,
	       "the demands are the same");

/* ---- entering -------------------------------------------------------------------------------- */

static int convert_end(const char *what, enum lodge_end end, enum session_end *ret)
{
	if (end != 0 && end != LODGE_END_HIBERNATE && end != LODGE_END_DESTROY)
		return err_set(&last, ERR_INVALID, "%s: unknown value", what);
	*ret = end == LODGE_END_DESTROY ? SESSION_END_DESTROY : SESSION_END_HIBERNATE;
	return 0;
}

/* Collects differences from the template. */
static int convert_overrides(const struct lodge_want *w, struct template *ret)
{
	if (lib_get_limits(w->limits, ret) < 0)
		return -1;
	if (w->demand & ~(unsigned)(LODGE_DEMAND_CGROUP | LODGE_DEMAND_DISK))
		return err_set(&last, ERR_INVALID, "demand: unknown bit");
	ret->demand |= w->demand;
	ret->class = w->root ? KEEPER_CLASS_ROOT : KEEPER_CLASS_USER;
	ret->user = w->run_as ? strdup(w->run_as) : NULL;
	ret->workdir = w->workdir ? strdup(w->workdir) : NULL;
	if ((w->run_as && !ret->user) || (w->workdir && !ret->workdir))
		return err_sys(&last, ENOMEM, "options");
	for (const char *const *e = w->env; e && *e; e++)
		if (template_set_env(ret, *e, &last) < 0)
			return err_ctx(&last, "env");
	return 0;
}

static int enter(struct lodge *l, const struct lodge_want *w, const struct template *over,
		 struct lodge_session **ret)
{
	auto_free struct store_binding *keys = NULL;
	struct session_opts want = {
		.nkeys = w->nkeys,
		.user = w->user,
		.template = w->template_name,
		.overrides = over,
		.snapshot = w->snapshot,
		.project = w->project,
		.fragment = w->fragment,
		.idle_timeout_ms = w->idle_timeout_ms,
		.lifetime_ms = w->lifetime_ms,
		.max_lifetime_ms = w->max_lifetime_ms,
		.delete_after_ms = w->delete_after_ms,
		.has_on_idle = w->on_idle != 0,
		.has_on_expire = w->on_expire != 0,
		.metadata = w->metadata,
		.must_be_new = w->must_be_new,
		.pin = w->pin,
		.idempotency_key = w->idempotency_key,
		.max_active_per_user = w->max_active_per_user,
		.on_exceed = w->replace ? SESSION_EXCEED_REPLACE : SESSION_EXCEED_REFUSE,
		.wait_ms = w->wait_ms,
		.no_start = w->asleep,
	};
	struct session_enter_result how = { 0 };

	if (lib_get_keys(w->keys, w->nkeys, &keys) < 0 ||
	    convert_end("on_idle", w->on_idle, &want.on_idle) < 0 ||
	    convert_end("on_expire", w->on_expire, &want.on_expire) < 0)
		return -1;
	want.keys = keys;
	if (session_enter(l->engine, &l->caller, &want, &how, &last) < 0)
		return -1;
	return lib_put_entered(&how, ret);
}

PUBLIC int lodge_enter(struct lodge *l, const struct lodge_want *want, struct lodge_session **ret)
{
	struct lodge_want w;
	auto_fini(template_fini) struct template over;

	template_init(&over);
	if (TAKE(lodge_want, want, &w) < 0 || convert_overrides(&w, &over) < 0)
		return -1;
	return enter(l, &w, &over, ret);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int call_session(struct lodge *l, const struct lodge_ref *ref, struct lodge_session **ret,
			int (*fn)(struct engine *e, const struct caller *caller,
				  const struct session_ref *ref, struct store_session *ret,
				  struct err *err))
{
	struct store_session s = { 0 };
	struct session_ref r;

	if (lib_get_ref(ref, &r) < 0 || fn(l->engine, &l->caller, &r, &s, &last) < 0)
		return -1;
	return lib_put_session(&s, ret);
}

PUBLIC int lodge_get(struct lodge *l, const struct lodge_ref *ref, struct lodge_session **ret)
{
	return call_session(l, ref, ret, session_get);
}

PUBLIC int lodge_list(struct lodge *l, const struct lodge_filter *filter,
		      struct lodge_sessions **ret)
{
	struct store_session_list list = { 0 };
	struct store_session_filter by;
	struct lodge_filter f;

	if (TAKE(lodge_filter, filter, &f) < 0)
		return -1;
	by = (struct store_session_filter){ .tenant = l->tenant,
					    .user = f.user,
					    .project = f.project,
					    .states = f.states,
					    .meta_key = f.meta_key,
					    .meta_value = f.meta_value };
	if (session_list(l->engine, &by, lib_get_page(f.after, f.limit), &list, &last) < 0)
		return -1;
	return lib_put_sessions(&list, ret);
}

PUBLIC int lodge_is_valid(struct lodge *l, const struct lodge_ref *ref)
{
	struct session_ref r;

	return lib_get_ref(ref, &r) == 0 && session_is_valid(l->engine, &l->caller, &r);
}

PUBLIC int lodge_tombstone_get(struct lodge *l, const struct lodge_ref *ref,
			       struct lodge_tombstone **ret)
{
	struct store_tombstone t;
	struct session_ref r;

	if (lib_get_ref(ref, &r) < 0 || session_tombstone(l->engine, &l->caller, &r, &t, &last) < 0)
		return -1;
	return lib_put_tombstone(&t, ret);
}

PUBLIC int lodge_durable(struct lodge *l, const struct lodge_ref *ref, int *ret)
{
	struct session_ref r;
	bool durable;

	if (lib_get_ref(ref, &r) < 0 ||
	    session_is_durable(l->engine, &l->caller, &r, &durable, &last) < 0)
		return -1;
	*ret = durable;
	return 0;
}

PUBLIC int lodge_stats_get(struct lodge *l, const struct lodge_ref *ref, struct lodge_stats **ret)
{
	struct lodge_stats *stats;
	struct keeper_stats s;
	struct session_ref r;
	uint64_t output;

	if (lib_get_ref(ref, &r) < 0 || session_stats(l->engine, &l->caller, &r, &s, &last) < 0 ||
	    session_output_memory(l->engine, &l->caller, &r, &output, &last) < 0)
		return -1;
	stats = box_new(sizeof(*stats), NULL);
	if (!stats)
		return -1;
	*stats = (struct lodge_stats){ .memory_bytes = s.memory_bytes,
				       .memory_peak_bytes = s.memory_peak_bytes,
				       .oom_kills = s.oom_kills,
				       .cpu_us = s.cpu_us,
				       .pids = s.pids,
				       .pids_denied = s.pids_denied,
				       .disk_bytes = s.disk_bytes,
				       .disk_full = s.disk_full != 0,
				       .output_memory_bytes = output };
	*ret = stats;
	return 0;
}

PUBLIC int lodge_probe(struct lodge *l, const struct lodge_ref *ref, int64_t deadline_ms,
		       struct lodge_probed **ret)
{
	struct session_probe_result p;
	struct session_ref r;

	if (lib_get_ref(ref, &r) < 0 ||
	    session_probe(l->engine, &l->caller, &r, deadline_ms, &p, &last) < 0)
		return -1;
	return lib_put_probed(&p, ret);
}

/* ---- changing -------------------------------------------------------------------------------- */

PUBLIC int lodge_extend(struct lodge *l, const struct lodge_ref *ref, int64_t ms,
			int64_t if_version, struct lodge_session **ret)
{
	struct store_session s = { 0 };
	struct session_extension how;
	struct session_ref r;

	if (lib_get_ref(ref, &r) < 0 ||
	    session_extend(l->engine, &l->caller, &r, ms, if_version, &how, &s, &last) < 0 ||
	    lib_put_session(&s, ret) < 0)
		return -1;
	if (ret) {
		(*ret)->extended_by_ms = how.by_ms;
		(*ret)->at_maximum = how.at_maximum;
	}
	return 0;
}

PUBLIC int lodge_activity(struct lodge *l, const struct lodge_ref *ref, struct lodge_session **ret)
{
	return call_session(l, ref, ret, session_activity);
}

static int change(struct lodge *l, const struct session_ref *ref, const struct lodge_patch *p,
		  const struct template *limits, struct lodge_session **ret)
{
	struct session_enter_result how = { 0 };
	int64_t keep = p->delete_after_ms == SESSION_KEEP ? 0 : p->delete_after_ms;
	enum session_end on_idle = SESSION_END_HIBERNATE, on_expire = SESSION_END_HIBERNATE;
	struct session_patch patch = {
		.idle_timeout_ms = p->idle_timeout_ms ? &p->idle_timeout_ms : NULL,
		.lifetime_ms = p->lifetime_ms ? &p->lifetime_ms : NULL,
		.max_lifetime_ms = p->max_lifetime_ms ? &p->max_lifetime_ms : NULL,
		.delete_after_ms = p->delete_after_ms ? &keep : NULL,
		.on_idle = p->on_idle ? &on_idle : NULL,
		.on_expire = p->on_expire ? &on_expire : NULL,
		.limits = p->limits ? limits : NULL,
		.metadata = p->metadata,
		.if_version = p->if_version,
	};

	if (convert_end("on_idle", p->on_idle, &on_idle) < 0 ||
	    convert_end("on_expire", p->on_expire, &on_expire) < 0 ||
	    session_change(l->engine, &l->caller, ref, &patch, &how.adjusted, &how.session, &last) <
		    0)
		return -1;
	return lib_put_changed(&how, ret);
}

PUBLIC int lodge_change(struct lodge *l, const struct lodge_ref *ref,
			const struct lodge_patch *patch, struct lodge_session **ret)
{
	auto_fini(template_fini) struct template limits;
	struct session_ref r;
	struct lodge_patch p;

	template_init(&limits);
	if (lib_get_ref(ref, &r) < 0 || TAKE(lodge_patch, patch, &p) < 0 ||
	    lib_get_limits(p.limits, &limits) < 0)
		return -1;
	return change(l, &r, &p, &limits, ret);
}

/* Calls that take a version and return the record. */
typedef int move_fn(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		    int64_t if_version, struct store_session *ret, struct err *err);

static int change_state(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
			struct lodge_session **ret, move_fn *fn)
{
	struct store_session s = { 0 };
	struct session_ref r;

	if (lib_get_ref(ref, &r) < 0 || fn(l->engine, &l->caller, &r, if_version, &s, &last) < 0)
		return -1;
	return lib_put_session(&s, ret);
}

PUBLIC int lodge_pause(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
		       struct lodge_session **ret)
{
	return change_state(l, ref, if_version, ret, session_pause);
}

PUBLIC int lodge_unpause(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
			 struct lodge_session **ret)
{
	return change_state(l, ref, if_version, ret, session_unpause);
}

PUBLIC int lodge_hibernate(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
			   struct lodge_session **ret)
{
	return change_state(l, ref, if_version, ret, session_hibernate);
}

PUBLIC int lodge_archive(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
			 struct lodge_session **ret)
{
	return change_state(l, ref, if_version, ret, session_archive);
}

PUBLIC int lodge_unarchive(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
			   struct lodge_session **ret)
{
	return change_state(l, ref, if_version, ret, session_unarchive);
}

PUBLIC int lodge_resume(struct lodge *l, const struct lodge_ref *ref, int64_t if_version,
			struct lodge_session **ret)
{
	struct session_enter_result how = { 0 };
	struct session_ref r;

	if (lib_get_ref(ref, &r) < 0 ||
	    session_resume(l->engine, &l->caller, &r, if_version, &how, &last) < 0)
		return -1;
	return lib_put_entered(&how, ret);
}

/* ---- ending ---------------------------------------------------------------------------------- */

PUBLIC int lodge_destroy(struct lodge *l, const struct lodge_ref *ref, const char *why,
			 struct lodge_tombstone **ret)
{
	struct session_cause_opts because = { .cause = SESSION_CAUSE_REQUESTED,
					      .text = why ? why : "",
					      .actor = l->actor };
	struct store_tombstone t;
	struct session_ref r;

	if (lib_get_ref(ref, &r) < 0 ||
	    session_destroy(l->engine, &l->caller, &r, &because, &t, &last) < 0)
		return -1;
	return lib_put_tombstone(&t, ret);
}

struct cleaned_box {
	struct lodge_cleaned pub;
	struct session_cleanup rec;
	const char *ids[];
};

static void cleaned_box_fini(void *body)
{
	struct cleaned_box *b = body;

	session_cleanup_fini(&b->rec);
}

PUBLIC int lodge_cleanup(struct lodge *l, const char *user, struct lodge_cleaned **ret)
{
	struct session_cleanup c = { 0 };
	struct cleaned_box *b;

	if (session_cleanup(l->engine, &l->caller, user, &c, &last) < 0)
		return -1;
	b = ret ? box_new(sizeof(*b) + (c.ndestroyed + c.nfailed) * sizeof(b->ids[0]),
			  cleaned_box_fini)
		: NULL;
	if (!b) {
		session_cleanup_fini(&c);
		return ret ? -1 : 0;
	}
	b->rec = c;
	for (size_t i = 0; i < c.ndestroyed; i++)
		b->ids[i] = c.destroyed[i];
	for (size_t i = 0; i < c.nfailed; i++)
		b->ids[c.ndestroyed + i] = c.failed[i];
	b->pub = (struct lodge_cleaned){ .destroyed = b->ids,
					 .failed = b->ids + c.ndestroyed,
					 .ndestroyed = c.ndestroyed,
					 .nfailed = c.nfailed };
	*ret = &b->pub;
	return 0;
}
