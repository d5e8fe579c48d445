/* SPDX-License-Identifier: Apache-2.0 */
/* Resumes a session: from a record to a running sandbox. The record names the sandbox before it
 * is made, so that a later reconcile knows what to undo. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/test_hook.h"
#include "sandbox/sandbox.h"
#include "admit/quota.h"
#include "engine/start_progress.h"
#include "layers/layers.h"
#include "machine/machine.h"
#include "machine/machine_watch.h"
#include "session/capacity.h"
#include "session/reconcile.h"
#include "session/resume.h"
#include "session/usage.h"
#include "session/user_slot.h"

struct stack {
	char ids[KEEPER_LAYERS_MAX][STORE_ID];
	const char *names[KEEPER_LAYERS_MAX];
	size_t count;
	bool take; /* nothing else refers to the topmost layer */
};

static int find_stack(struct session *n, struct stack *ret, struct err *err)
{
	int64_t refs;

	ret->count = 0;
	ret->take = false;
	if (!*n->rec.layer)
		return 0;
	if (layers_list_stack(n->engine, n->rec.layer, ret->ids, &ret->count, err) < 0 ||
	    STORE_CALL(n->engine, store_layer_refs, n->rec.layer, &refs, err) < 0)
		return -1;
	for (size_t i = 0; i < ret->count; i++)
		ret->names[i] = ret->ids[i];
	ret->take = refs == 1;
	return 0;
}

/* *t: the merged template, for template_fini(), also on failure. */
static int make_sandbox(struct session *n, const struct stack *stack, struct template *t,
			struct sandbox **ret, struct err *err)
{
	struct sandbox_spec spec = sandbox_spec_default();
	char base[STORE_ID];

	if (spec_load(n->engine, &n->rec, t, err) < 0 || template_apply(t, &spec, err) < 0 ||
	    spec_base(n->engine, &n->rec, base, err) < 0)
		return -1;
	spec.id = n->rec.sandbox;
	spec.template = base;
	if (template_can_make_workdir(t))
		spec.workdir = t->workdir;
	spec.store = KEEPER_STORE_DISK;
	spec.keep = true;
	spec.take = stack->take;
	spec.layers = stack->names;
	spec.nlayers = stack->count;
	return KEEPER_CALL_ONCE(n->engine, err, sandbox_new, &spec, ret, err);
}

/* Takes over `sb` and what `t` owns, also on failure. */
static int connect_machine(struct session *n, struct template *t, struct sandbox *sb,
			   struct err *err)
{
	static const struct session_cause_opts none = { .cause = SESSION_CAUSE_NONE };
	struct machine *v = NULL;

	if (machine_new(n->engine, &n->rec, t, sb, false, &v, err) < 0)
		return -1;
	if (session_transition(n, SESSION_READY, &none, NULL, NULL, err) < 0) {
		machine_close(v);
		return -1;
	}
	n->probe_failures = 0;
	n->cpu_us = 0;
	usage_start(n);
	session_set_machine(n, v);
	machine_set_deadlines(v, n->rec.hibernate_at, n->rec.expires_at);
	return 0;
}

static enum session_source source_of(const struct session *n, enum keeper_source from)
{
	if (n->rec.state == SESSION_RESTORING)
		return n->rec.incarnation <= 1 ? SESSION_SOURCE_FORK : SESSION_SOURCE_RESUME;
	return from == KEEPER_SOURCE_POOL ? SESSION_SOURCE_POOL : SESSION_SOURCE_COLD;
}

static int start(struct session *n, struct resume_result *ret, struct err *err)
{
	struct stack stack;
	auto_fini(template_fini) struct template t;
	struct sandbox *sb = NULL;

	template_init(&t);
	if (find_stack(n, &stack, err) < 0 || make_sandbox(n, &stack, &t, &sb, err) < 0)
		return -1;
	hook_crash("resume:made");
	ret->source = source_of(n, sandbox_source(sb));
	ret->ready_us = sandbox_ready_us(sb);
	if (connect_machine(n, &t, sb, err) < 0)
		return -1;
	n->layer_use = stack.take ? LAYER_TAKEN : LAYER_BELOW;
	return 0;
}

/* Does not wait for a keeper that fails: what cannot be undone now, the next reconcile finds by the
 * record. */
static int undo_at_once(struct session *n)
{
	enum keeper_patience was = keeper_conn_set_patience(KEEPER_IMPATIENT);
	struct err ignored;
	int r = reconcile_undo_start(n, &ignored);

	(void)keeper_conn_set_patience(was);
	return r;
}

/* A keeper that exits meanwhile may have made the sandbox: that is undone, and tried again. */
static int start_patiently(struct session *n, struct resume_result *ret, struct err *err)
{
	struct keeper_retry retry = { .until = clock_mono_ms() + n->engine->opts.keeper_wait_ms };

	while (start(n, ret, err) < 0)
		do
			if (!keeper_conn_may_retry(n->engine, &retry, true, err))
				return -1;
		while (undo_at_once(n) < 0);
	return 0;
}

int resume_restored(struct session *n, struct resume_result *ret, struct err *err)
{
	struct session_cause_opts failed = { SESSION_CAUSE_ERROR, err->msg, "lodge" };
	uint64_t began_us = clock_mono_us();
	struct err second;

	progress_report(n->engine, n->id, "running", "sandbox", "starting the sandbox", 1, 2);
	if (start_patiently(n, ret, err) == 0) {
		histogram_add(&n->engine->metrics.started[ret->source], clock_mono_us() - began_us);
		hook_crash("resume:ready");
		progress_report(n->engine, n->id, "ready", "ready", "the sandbox is ready", 2, 2);
		return 0;
	}
	/* the session exists: a missing layer or template must not look as if it did not */
	if (err->code == ERR_NOT_FOUND)
		err->code = ERR_CONFLICT;
	progress_report(n->engine, n->id, "error", "sandbox", err->msg, 1, 2);
	capacity_release_session(n);
	/* Also after an error of the keeper: it may have made the sandbox before it died. */
	if (undo_at_once(n) == 0)
		(void)session_transition(n, SESSION_ERROR, &failed, NULL, NULL, &second);
	else
		session_set_due(n, engine_now(n->engine)); /* as soon as the keeper answers */
	return -1;
}

static void set_sandbox(struct store_session *s, void *arg)
{
	snprintf(s->sandbox, sizeof(s->sandbox), "%s", (const char *)arg);
}

/* Checking a quota and counting towards it are one step: two sessions never take the same rest. */
static void lock_quota(struct engine *e, struct name_lock *l, const struct store_session *s)
{
	name_lock(e, l, "quota", s->tenant, "");
}

int resume_new_session(struct engine *e, struct store_session *s, const struct store_event *ev,
		       const struct session_cause_opts *why, bool no_start, struct session **ret,
		       struct err *err)
{
	char sandbox[STORE_ID];
	auto_call(session_unlock) struct session *n = NULL;
	auto_fini(name_unlock) struct name_lock lock = { 0 };
	int r = 0;

	if (id_generate("sbx_", sandbox, err) < 0)
		return -1;
	lock_quota(e, &lock, s);
	if (quota_check(e, s, true, no_start, err) < 0 ||
	    session_create(e, s, ev, !no_start && !*s->layer, &n, err) < 0)
		return -1;
	if (!no_start)
		r = session_transition(n, SESSION_START, why, set_sandbox, sandbox, err);
	n->relaxed = false; /* without files the record of its start had nothing to save */
	if (r < 0)
		return -1;
	hook_crash("resume:recorded");
	*ret = steal_ptr(&n);
	return 0;
}

static int record_start(struct session *n, const struct session_cause_opts *why, struct err *err)
{
	char sandbox[STORE_ID];
	auto_fini(name_unlock) struct name_lock lock = { 0 };

	if (id_generate("sbx_", sandbox, err) < 0)
		return -1;
	lock_quota(n->engine, &lock, &n->rec);
	if (quota_check(n->engine, &n->rec, false, false, err) < 0)
		return -1;
	return session_transition(n, SESSION_START, why, set_sandbox, sandbox, err);
}

int resume_session(struct session *n, const struct session_cause_opts *why, int64_t wait_ms,
		   struct resume_result *ret, struct err *err)
{
	enum session_state to;

	if (session_record_next(&n->rec, SESSION_START, &to, err) < 0 || spec_refresh(n, err) < 0 ||
	    keeper_conn_check_answers(n->engine, err) < 0)
		return -1;
	if (!n->has_capacity && (quota_check(n->engine, &n->rec, false, false, err) < 0 ||
				 capacity_acquire(n->engine, wait_ms, err) < 0))
		return -1;
	n->has_capacity = true;
	if (record_start(n, why, err) < 0) {
		capacity_release_session(n);
		return -1;
	}
	hook_crash("resume:recorded");
	return resume_restored(n, ret, err);
}

int session_lock_for_use(struct engine *e, const struct caller *caller,
			 const struct session_ref *ref, bool resume, struct session **ret,
			 struct name_lock *slot, struct err *err)
{
	return resume ? user_slot_acquire_ref(e, caller, ref, 0, ret, slot, err)
		      : session_lock_reconciled(e, caller, ref, 0, ret, err);
}

int session_ensure_running(struct session *n, const struct caller *caller, bool resume,
			   enum session_outcome *ret, struct err *err)
{
	struct session_cause_opts why = { SESSION_CAUSE_REQUESTED, NULL, caller->actor };
	struct resume_result resumed;

	*ret = SESSION_REUSED;
	if (n->rec.state != SESSION_ACTIVE || !n->machine) {
		if (!resume)
			return err_set(err, ERR_CONFLICT, "session %s is %s", n->id,
				       state_machine_name(&session_states, n->rec.state));
		*ret = session_has_files(&n->rec) ? SESSION_RESUMED
		       : n->rec.started_at	  ? SESSION_REPLACED
						  : SESSION_CREATED;
		if (resume_session(n, &why, 0, &resumed, err) < 0)
			return -1;
	}
	if (n->rec.paused && session_thaw(n, caller->actor, err) < 0)
		return -1;
	session_touch(n);
	return 0;
}
