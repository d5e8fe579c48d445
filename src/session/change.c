/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller may change of a session that is there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "machine/machine.h"
#include "sandbox/template/template_json.h"
#include "session/session_opts.h"
#include "session/session_times.h"
#include "admit/quota.h"

/* ---- deadlines ------------------------------------------------------------------------------- */

static void explain_extension(const struct engine *e, const struct store_session *s, int64_t asked,
			      struct session_extension *done)
{
	const char *bound = e->opts.library ? "lifetime_max_ms" : "lifetime_max";
	char most[SIZE_TEXT];

	if (done->by_ms >= asked || !done->at_maximum)
		return;
	snprintf(done->reason, sizeof(done->reason), "the maximum lifetime of %s is reached (%s)",
		 units_format_ms((uint64_t)s->max_lifetime_ms, most),
		 s->max_lifetime_ms < e->opts.lifetime_max_ms ? "max_lifetime_ms" : bound);
}

int session_extend(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		   int64_t ms, int64_t if_version, struct session_extension *how,
		   struct store_session *ret, struct err *err)
{
	struct session_extension done = { 0 };
	auto_call(session_unlock) struct session *n = NULL;
	auto_fini(store_session_fini) struct store_session s = { 0 };

	if (ms < 0 || ms > SESSION_TIME_MAX_MS)
		return err_set(err, ERR_INVALID, "ms: must be between 0 and %lld",
			       (long long)SESSION_TIME_MAX_MS);
	if (session_lock_reconciled(e, caller, ref, if_version, &n, err) < 0 ||
	    session_require_active(n, "extend", err) < 0 ||
	    store_session_copy(&n->rec, &s, err) < 0)
		return -1;
	ms = ms ? ms : e->opts.extend_ms;
	done.by_ms = session_record_extend(&s, engine_now(e), ms);
	done.at_maximum = session_is_at_maximum(&s);
	explain_extension(e, &s, ms, &done);
	if (session_update_as(n, &s, "extend", caller->actor, err) < 0)
		return -1;
	if (how)
		*how = done;
	return session_return_record(n, ret, err);
}

int session_activity(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		     struct store_session *ret, struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;

	if (session_lock_reconciled(e, caller, ref, 0, &n, err) < 0 ||
	    session_require_active(n, "keep busy", err) < 0)
		return -1;
	session_touch(n);
	if (session_flush(n, err) < 0)
		return -1;
	return session_return_record(n, ret, err);
}

/* ---- preferences ----------------------------------------------------------------------------- */

/* In force at once, if there is a sandbox to be limited. */
static int apply_limits(struct session *n, const struct store_session *s, struct err *err)
{
	struct keeper_request req = keeper_client_request(KEEPER_LIMITS, n->rec.sandbox);
	struct sandbox_spec full = sandbox_spec_default();
	auto_fini(template_fini) struct template all;

	template_init(&all);
	if (!n->machine)
		return 0;
	if (spec_load(n->engine, s, &all, err) < 0 || template_apply(&all, &full, err) < 0)
		return -1;
	req.limits = full.limits;
	if (keeper_conn_call(n->engine, &req, NULL, err) < 0)
		return -1;
	machine_set_limits(n->machine, &req.limits, all.limits_set);
	return 0;
}

int session_restore_limits(struct session *n, struct err *err)
{
	if (!n->limits_unsure)
		return 0;
	if (apply_limits(n, &n->rec, err) < 0)
		return -1;
	n->limits_unsure = false;
	return 0;
}

/* If the keeper does not answer, the timers do it once it does: requests are carried out in order.
 */
static void undo_limits(struct session *n)
{
	struct err ignored;

	n->limits_unsure = true;
	(void)session_restore_limits(n, &ignored);
}

static int patch_spec(const struct template *limits, struct store_session *s, struct err *err)
{
	struct template only = { .limits = limits->limits, .limits_set = limits->limits_set };
	auto_fini(template_fini) struct template over;
	char *text;

	template_init(&over);
	if (s->spec && template_parse("session", s->spec, strlen(s->spec), &over, err) < 0)
		return -1;
	only.class = over.class; /* a limit is all that changes */
	if (template_merge(&over, &only, err) < 0 || template_print(&over, &text, err) < 0)
		return -1;
	free(s->spec);
	s->spec = text;
	return 0;
}

/* Only if the change causes it: what was stored before may be larger, and is lowered for use. */
static int check_output(const struct session *n, const struct template *limits,
			const struct store_session *s, struct err *err)
{
	auto_fini(template_fini) struct template own;
	struct limits now;

	template_init(&own);
	if (spec_limits(n->engine, s, &now, err) < 0 ||
	    template_parse("session", s->spec, strlen(s->spec), &own, err) < 0)
		return -1;
	if (!template_has_limit(limits, "output_bytes") &&
	    session_output_check(&own, (uint64_t)n->rec.memory_bytes, err) < 0)
		return 0;
	return session_output_check(&own, now.memory_bytes, err);
}

static int patch_limits(struct session *n, const struct template *limits, struct store_session *s,
			struct err *err)
{
	struct enforcement f;
	struct limits now;

	keeper_conn_enforcement(n->engine, &f);
	if (enforcement_check(&f, KEEPER_STORE_DISK, limits->demand, err) < 0 ||
	    patch_spec(limits, s, err) < 0 || check_output(n, limits, s, err) < 0 ||
	    spec_limits(n->engine, s, &now, err) < 0)
		return -1;
	s->memory_bytes = (int64_t)now.memory_bytes;
	s->disk_bytes = (int64_t)now.disk_bytes;
	if ((s->memory_bytes > n->rec.memory_bytes || s->disk_bytes > n->rec.disk_bytes) &&
	    quota_check(n->engine, s, false, !n->machine, err) < 0)
		return -1;
	if (apply_limits(n, s, err) == 0)
		return 0;
	undo_limits(n); /* some may have been changed before it failed */
	return -1;
}

static int check_lowers(struct session *n, const struct template *limits, struct err *err)
{
	struct template now = { .limits_set = UINT32_MAX };
	const char *raised;

	session_limits(n->engine, &n->rec, &now.limits);
	raised = template_exceeded_limit(limits, &now);
	return raised ? err_set(err, ERR_DENIED,
				"limits.%s: a key for one session may only lower limits; to raise "
				"them, use a key with scope \"tenant\"",
				strcmp(raised, "cpu_milli") == 0 ? "cpus" : raised)
		      : 0;
}

static int patch_times(struct engine *e, const struct session_patch *p,
		       const struct policy_rules *rules, struct session_fields *adjusted,
		       struct store_session *s, struct err *err)
{
	struct session_times t = { .idle_timeout_ms = p->idle_timeout_ms,
				   .lifetime_ms = p->lifetime_ms,
				   .max_lifetime_ms = p->max_lifetime_ms,
				   .delete_after_ms = p->delete_after_ms };
	struct store_session was = *s;

	if (session_times_apply(e, &rules->policy, &t, NULL, s, err) < 0)
		return -1;
	if (s->lifetime_ms > s->max_lifetime_ms) {
		s->lifetime_ms = s->max_lifetime_ms;
		session_fields_add(adjusted, SESSION_FIELD_LIFETIME);
	}
	if (s->state == SESSION_ACTIVE && (t.idle_timeout_ms || t.lifetime_ms || t.max_lifetime_ms))
		session_record_retime(s, &was, engine_now(e));
	else if (t.delete_after_ms && s->state == SESSION_HIBERNATED)
		s->due_at = session_rest_until(s);
	return 0;
}

static int patch_rest(const struct session_patch *p, struct store_session *s, struct err *err)
{
	char *text;

	if (p->on_idle)
		s->on_idle = (uint8_t)*p->on_idle;
	if (p->on_expire)
		s->on_expire = (uint8_t)*p->on_expire;
	if (!p->metadata)
		return 0;
	if (session_metadata_check(p->metadata, err) < 0)
		return -1;
	text = strdup(p->metadata);
	if (!text)
		return err_sys(err, ENOMEM, "metadata");
	free(s->metadata);
	s->metadata = text;
	return 0;
}

static int patch(struct session *n, const struct session_patch *p, struct session_fields *adjusted,
		 struct store_session *s, struct err *err)
{
	auto_fini(policy_rules_fini) struct policy_rules rules;

	if (policy_rules_load(n->engine, s->tenant, s->policy, &rules, err) < 0 ||
	    policy_rules_check(n->engine, &rules, p->limits, err) < 0 ||
	    (p->limits && p->lower_only && check_lowers(n, p->limits, err) < 0) ||
	    patch_times(n->engine, p, &rules, adjusted, s, err) < 0 || patch_rest(p, s, err) < 0)
		return -1;
	return p->limits ? patch_limits(n, p->limits, s, err) : 0;
}

int session_change(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		   const struct session_patch *p, struct session_fields *adjusted,
		   struct store_session *ret, struct err *err)
{
	struct session_fields unnamed = { 0 };
	auto_call(session_unlock) struct session *n = NULL;
	auto_fini(store_session_fini) struct store_session s = { 0 };

	if (session_lock_reconciled(e, caller, ref, p->if_version, &n, err) < 0 ||
	    store_session_copy(&n->rec, &s, err) < 0 ||
	    patch(n, p, adjusted ? adjusted : &unnamed, &s, err) < 0)
		return -1;
	if (session_update_as(n, &s, "change", caller->actor, err) < 0) {
		if (p->limits) /* what the record does not say is not so */
			undo_limits(n);
		return -1;
	}
	return session_return_record(n, ret, err);
}
