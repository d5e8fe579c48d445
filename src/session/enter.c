/* SPDX-License-Identifier: Apache-2.0 */
/* Get or create: one call that returns a running sandbox, whatever happened to the last one, and
 * reports what it had to do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test_hook.h"
#include "engine/environment_request.h"
#include "session/ignored.h"
#include "session/session_opts.h"
#include "admit/quota.h"
#include "session/single_flight.h"
#include "session/capacity.h"
#include "session/resume.h"

enum { RACES_MAX = 8 };

struct enter { /* one call under way */
	struct engine *e;
	const struct caller *caller;
	const struct session_opts *opts;
	const struct policy_rules *rules; /* NULL: for one that is there */
	char id[STORE_ID]; /* that a new one gets */
	bool existed; /* the session was there before the call */
	struct session_enter_result out;
};

void session_enter_result_fini(struct session_enter_result *r)
{
	store_session_fini(&r->session);
	memset(r, 0, sizeof(*r));
}

/* ---- existing session ------------------------------------------------------------------------ */

static int check_existing(const struct enter *x, const struct session *n, struct err *err)
{
	const struct session_opts *w = x->opts;
	struct session_ref pinned = { .id = w->pin };

	if (w->must_be_new)
		return err_set(err, ERR_CONFLICT, "session %s already exists", n->id);
	if (w->user && *n->rec.user && strcmp(w->user, n->rec.user) != 0)
		return err_set(err, ERR_CONFLICT, "session %s belongs to another user", n->id);
	if (!w->pin || strcmp(w->pin, n->id) == 0 || strcmp(w->pin, n->rec.sandbox) == 0)
		return 0;
	err_set(err, ERR_CONFLICT, "pin: the session is %s with sandbox %s, not %s", n->id,
		*n->rec.sandbox ? n->rec.sandbox : "(none)", w->pin);
	if (session_ref_is_sandbox(&pinned)) /* one that was replaced is gone */
		return session_ref_gone(x->e, x->caller, &pinned, err);
	return -1;
}

/* All keys of the call lead to the one session afterwards. */
static int bind_keys(const struct enter *x, struct session *n, struct err *err)
{
	for (size_t i = 0; i < x->opts->nkeys; i++) {
		const struct store_binding *key = &x->opts->keys[i];

		if (session_is_bound(&n->rec, key))
			continue;
		if (session_flush(n, err) < 0)
			return -1;
		if (STORE_CALL(x->e, store_session_rebind, x->caller->tenant, key, NULL, n->id,
			       NULL, err) < 0)
			return err_ctx(err, "%s '%.64s'", key->kind, key->key);
		/* each time: the store raised the version, whatever becomes of the next key */
		if (session_reload(n, err) < 0) {
			session_forget(n); /* the next holder of the lock reads it */
			return -1;
		}
	}
	return 0;
}

/* About to expire: its files get a new sandbox now instead of ending under the caller's hands,
 * unless the caller asked for this very sandbox. */
static int renew_if_due(const struct enter *x, struct session *n, struct err *err)
{
	static const struct session_cause_opts expired = { SESSION_CAUSE_EXPIRED,
							   "its lifetime is over", "lodge" };

	if (n->rec.state != SESSION_ACTIVE || session_is_active(&n->rec, engine_now(n->engine)) ||
	    (x->opts->pin && strcmp(x->opts->pin, n->rec.sandbox) == 0))
		return 0;
	return hibernate_session(n, &expired, err);
}

static int start_existing(struct enter *x, struct session *n, struct err *err)
{
	struct session_cause_opts why = { SESSION_CAUSE_REQUESTED, NULL, x->caller->actor };
	struct resume_result resumed = { 0 };
	bool had_files = session_has_files(&n->rec), first = !n->rec.started_at;

	x->out.cause = n->rec.cause;
	if (resume_session(n, &why, x->opts->wait_ms, &resumed, err) < 0)
		return -1;
	x->out.source = resumed.source;
	x->out.ready_us = resumed.ready_us;
	x->out.outcome = first ? SESSION_CREATED : had_files ? SESSION_RESUMED : SESSION_REPLACED;
	x->out.state_lost = x->out.outcome == SESSION_REPLACED;
	return 0;
}

bool session_key_is_lost(struct engine *e, const struct caller *caller,
			 const struct store_binding *keys, size_t nkeys, const char *user,
			 struct store_cause *ret)
{
	struct store_tombstone t;
	struct err ignored;
	int r = -1;

	for (size_t i = 0; r < 0 && i < nkeys; i++)
		r = STORE_CALL(e, store_tombstone_find, caller->tenant, &keys[i], &t, &ignored);
	if (r < 0 || strcmp(t.cause.code, session_cause_name(SESSION_CAUSE_REQUESTED)) == 0 ||
	    (user && *t.user && strcmp(user, t.user) != 0)) /* another's loss */
		return false;
	*ret = t.cause;
	return true;
}

static void report_loss(struct enter *x)
{
	const struct session_opts *w = x->opts;

	x->out.state_lost =
		session_key_is_lost(x->e, x->caller, w->keys, w->nkeys, w->user, &x->out.cause);
	x->out.outcome = x->out.state_lost ? SESSION_REPLACED : SESSION_CREATED;
}

/* A caller that repeats its request because the first response was lost has not seen the loss
 * yet; one that used the session since has. */
static void repeat_loss(struct enter *x, const struct session *n)
{
	if (x->opts->idempotency_key && strcmp(n->id, x->id) == 0 &&
	    n->rec.last_activity_at == n->rec.started_at)
		report_loss(x);
	if (!x->out.state_lost)
		x->out.outcome = SESSION_REUSED;
}

static int use_existing(struct enter *x, struct session *n, struct err *err)
{
	if (check_existing(x, n, err) < 0 || bind_keys(x, n, err) < 0)
		return -1;
	repeat_loss(x, n);
	x->existed = true;
	if (x->opts->no_start)
		return store_session_copy(&n->rec, &x->out.session, err);
	if (renew_if_due(x, n, err) < 0)
		return -1;
	if (n->rec.state != SESSION_ACTIVE && start_existing(x, n, err) < 0)
		return -1;
	if (session_thaw(n, x->caller->actor, err) < 0)
		return -1;
	if (!x->out.state_lost)
		session_touch(n);
	return store_session_copy(&n->rec, &x->out.session, err);
}

/* ---- new session ----------------------------------------------------------------------------- */

static int start_new(struct enter *x, struct session *n, struct err *err)
{
	struct resume_result resumed;

	if (!x->opts->no_start) {
		if (resume_restored(n, &resumed, err) < 0)
			return -1;
		x->out.source = resumed.source;
		x->out.ready_us = resumed.ready_us;
		environment_request_add(x->e, n->rec.template, false);
	}
	return store_session_copy(&n->rec, &x->out.session, err);
}

/* Capacity and quota come before the record: a refusal leaves no trace. */
static int add_session(struct enter *x, struct store_session *s, struct session **ret,
		       struct err *err)
{
	struct session_cause_opts why = { SESSION_CAUSE_REQUESTED, NULL, x->caller->actor };
	struct store_event ev = { .kind = "create",
				  .cause = session_cause_record(&why, s->created_at) };
	bool awake = !x->opts->no_start;

	/* before another session is evicted for it; resume_new_session() counts it */
	if (keeper_conn_check_answers(x->e, err) < 0 || disk_space_check(x->e, err) < 0 ||
	    quota_check(x->e, s, true, !awake, err) < 0 ||
	    (awake && capacity_acquire(x->e, x->opts->wait_ms, err) < 0))
		return -1;
	if (resume_new_session(x->e, s, &ev, &why, !awake, ret, err) < 0) {
		if (awake)
			capacity_release(x->e);
		return -1;
	}
	(*ret)->has_capacity = awake;
	return 0;
}

/* A session that can never start as requested must not block another request with the same key:
 * it never had a sandbox, so nothing is lost. */
static void retract_refused(struct session *n, const struct err *why)
{
	bool refused =
		why->code == ERR_INVALID || why->code == ERR_DENIED || why->code == ERR_CONFLICT;
	struct store_event ev = { .kind = "refuse", .cause = n->rec.cause };
	struct err ignored;

	if (refused && n->rec.state == SESSION_FAILED && !*n->rec.sandbox &&
	    STORE_CALL(n->engine, store_session_retract, &n->rec, &ev, &ignored) == 0)
		session_forget(n);
}

/* 1: a key that was free a moment ago leads somewhere now. */
static int create_session(struct enter *x, struct err *err)
{
	struct store_session s = { 0 };
	auto_call(session_unlock) struct session *n = NULL;
	char layer[STORE_ID];
	int r;

	if (x->opts->pin)
		return err_set(err, ERR_CONFLICT, "pin: no such session: %s", x->opts->pin);
	if (session_opts_to_record(x->e, x->caller, x->opts, x->rules, x->id, &x->out.adjusted, &s,
				   err) < 0)
		return -1;
	report_loss(x);
	memcpy(layer, s.layer, sizeof(layer));
	r = add_session(x, &s, &n, err);
	session_opts_release(x->e, x->id, layer);
	if (r < 0) {
		store_session_fini(&s);
		return err->code == ERR_CONFLICT && x->opts->nkeys ? 1 : -1;
	}
	r = start_new(x, n, err);
	if (r < 0)
		retract_refused(n, err);
	return r;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* 1: found and locked. */
static int find_existing(struct enter *x, struct session **ret, struct err *err)
{
	struct session_ref by_id = { .id = NULL };

	for (size_t i = 0; i < x->opts->nkeys; i++) {
		struct session_ref ref = { .kind = x->opts->keys[i].kind,
					   .key = x->opts->keys[i].key };

		if (session_lock_reconciled(x->e, x->caller, &ref, 0, ret, err) == 0)
			return 1;
		if (err->code != ERR_NOT_FOUND)
			return -1;
	}
	/* by the id that was promised, or asked for */
	by_id.id = x->opts->idempotency_key ? x->id : x->opts->nkeys ? NULL : x->opts->pin;
	if (!by_id.id)
		return 0;
	if (session_lock_reconciled(x->e, x->caller, &by_id, 0, ret, err) == 0)
		return 1;
	/* what the key led to was destroyed, or the sandbox ended: its id never comes back */
	return err->code != ERR_NOT_FOUND || err->sys == SESSION_SANDBOX_ENDED ||
			       (x->opts->idempotency_key && err->sys == ESTALE)
		       ? -1
		       : 0;
}

static int enter_or_create(struct enter *x, struct err *err)
{
	for (int i = 0; i < RACES_MAX; i++) {
		auto_call(session_unlock) struct session *n = NULL;
		int r = find_existing(x, &n, err);

		if (r < 0)
			return -1;
		if (r > 0)
			return use_existing(x, n, err);
		r = create_session(x, err);
		if (r <= 0)
			return r;
	}
	return -1;
}

/* The same idempotency key leads to the same id, also when the first caller died in between. Two
 * users may have thought of the same. */
static int claim_id(struct enter *x, struct err *err)
{
	struct store_once once = { .created_at = engine_now(x->e) }, first;
	int r;

	if (id_generate("ses_", x->id, err) < 0)
		return -1;
	if (!x->opts->idempotency_key)
		return 0;
	snprintf(once.tenant, sizeof(once.tenant), "%s", x->caller->tenant);
	snprintf(once.scope, sizeof(once.scope), "create:%s", x->opts->user ? x->opts->user : "");
	snprintf(once.key, sizeof(once.key), "%s", x->opts->idempotency_key);
	memcpy(once.target, x->id, sizeof(once.target));
	r = STORE_CALL(x->e, store_once_claim, &once, &first, err);
	if (r < 0 && err->code == ERR_CONFLICT) {
		memcpy(x->id, first.target, sizeof(x->id));
		return 0;
	}
	return r;
}

static int enter_one(struct enter *x, struct err *err)
{
	auto_fini(name_unlock) struct name_lock lock = { 0 };

	if (claim_id(x, err) < 0)
		return -1;
	if (x->opts->max_active_per_user && x->opts->user) {
		/* two sessions of one user may replace each other */
		user_slot_lock(x->e, &lock, x->caller, x->opts->user);
		if (user_slot_free_one(x->e, x->caller, x->opts, x->id, err) < 0)
			return -1;
	}
	return enter_or_create(x, err);
}

/* Calls share a result only if all keys, the tenant and the user are the same. Lengths separate
 * the parts. */
static char *flight_name(const struct caller *caller, const struct session_opts *w)
{
	size_t size = 64 + STORE_NAME + STORE_USER + w->nkeys * (sizeof(*w->keys) + 48);
	const char *user = w->user ? w->user : "";
	char *name = malloc(size);
	size_t n;

	if (!name)
		return NULL;
	n = (size_t)snprintf(name, size, "enter:%zu:%s%zu:%s", strlen(caller->tenant),
			     caller->tenant, strlen(user), user);
	for (size_t i = 0; i < w->nkeys; i++)
		n += (size_t)snprintf(name + n, size - n, "%zu:%s%zu:%s", strlen(w->keys[i].kind),
				      w->keys[i].kind, strlen(w->keys[i].key), w->keys[i].key);
	return name;
}

static int enter_with_rules(struct enter *x, struct err *err)
{
	const struct session_opts *asked = x->opts;
	struct session_opts opts = *asked;
	auto_fini(policy_rules_fini) struct policy_rules rules = { 0 };
	char user[STORE_USER];
	int r;

	if (session_opts_rules(x->e, x->caller, &opts, user, &rules, err) < 0)
		return -1;
	x->opts = &opts;
	x->rules = &rules;
	r = enter_one(x, err);
	x->opts = asked;
	x->rules = NULL;
	return r;
}

static int finish(struct enter *x, int r, struct session_enter_result *ret)
{
	if (r < 0) {
		session_enter_result_fini(&x->out);
		return -1;
	}
	x->e->metrics.entered[x->out.outcome]++;
	*ret = x->out;
	return 0;
}

int session_enter(struct engine *e, const struct caller *caller, const struct session_opts *opts,
		  struct session_enter_result *ret, struct err *err)
{
	struct enter x = { .e = e, .caller = caller, .opts = opts };
	bool shared = opts->nkeys && !opts->pin && !opts->must_be_new && !opts->idempotency_key &&
		      !opts->no_start && !opts->snapshot;
	struct single_flight *flight = NULL;
	auto_free char *name = NULL;
	int r;

	if (session_opts_check(e, caller, opts, err) < 0)
		return -1;
	if (shared && !(name = flight_name(caller, opts)))
		return err_sys(err, ENOMEM, "session");
	if (shared && !single_flight_join(e, name, &flight, ret, &r, err)) {
		if (r == 0) {
			e->metrics.entered[ret->outcome]++;
			ret->ignored = ignored_fields(e, opts, &ret->session);
		}
		return r;
	}
	r = enter_with_rules(&x, err);
	if (r == 0 && x.existed)
		x.out.ignored = ignored_fields(e, opts, &x.out.session);
	if (shared)
		single_flight_finish(e, flight, r, &x.out, err);
	return finish(&x, r, ret);
}

int session_resume(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		   int64_t if_version, struct session_enter_result *ret, struct err *err)
{
	struct session_opts opts = { .pin = session_ref_is_sandbox(ref) ? ref->id : NULL };
	struct enter x = { .e = e, .caller = caller, .opts = &opts };
	auto_fini(name_unlock) struct name_lock slot = { 0 };
	auto_call(session_unlock) struct session *n = NULL;

	if (user_slot_acquire_ref(e, caller, ref, if_version, &n, &slot, err) < 0)
		return -1;
	return finish(&x, use_existing(&x, n, err), ret);
}
