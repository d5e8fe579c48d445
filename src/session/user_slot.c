/* SPDX-License-Identifier: Apache-2.0 */
#include "session/user_slot.h"

#include <stdio.h>
#include <string.h>

#include "session/session_opts.h"
#include "session/reconcile.h"

static bool is_requested(const struct session_opts *w, const char *id,
			 const struct store_session *s)
{
	if (strcmp(s->id, id) == 0 ||
	    (w->pin && (strcmp(w->pin, s->id) == 0 || strcmp(w->pin, s->sandbox) == 0)))
		return true;
	for (size_t k = 0; k < w->nkeys; k++)
		if (session_is_bound(s, &w->keys[k]))
			return true;
	return false;
}

void user_slot_lock(struct engine *e, struct name_lock *l, const struct caller *caller,
		    const char *user)
{
	name_lock(e, l, "user_slot", caller->tenant, user);
}

/* The others keep their files. */
static int replace_others(struct engine *e, const struct caller *caller,
			  const struct store_session_list *l, const struct session_opts *w,
			  const char *id, size_t excess, struct err *err)
{
	static const struct session_cause_opts replaced = {
		SESSION_CAUSE_REPLACED, "replaced by another session of its user", "lodge"
	};

	for (size_t i = 0; excess > 0 && i < l->count; i++) {
		auto_call(session_unlock) struct session *n = NULL;

		if (is_requested(w, id, &l->items[i]))
			continue;
		if (session_lock(e, caller->tenant, l->items[i].id, &n, err) < 0) {
			if (err->code != ERR_NOT_FOUND)
				return -1;
		} else if (reconcile_session(n, err) < 0 ||
			   (n->rec.state == SESSION_ACTIVE &&
			    hibernate_session(n, &replaced, err) < 0)) {
			return -1;
		}
		excess--;
	}
	return 0;
}

int user_slot_free_one(struct engine *e, const struct caller *caller, const struct session_opts *w,
		       const char *id, struct err *err)
{
	struct store_session_filter f = { .tenant = caller->tenant,
					  .user = w->user,
					  .states = SM_BIT(SESSION_PROVISIONING) |
						    SM_BIT(SESSION_ACTIVE) |
						    SM_BIT(SESSION_HIBERNATING) |
						    SM_BIT(SESSION_RESTORING) };
	auto_fini(store_session_list_fini) struct store_session_list l = { 0 };
	size_t others = 0;

	if (session_list(e, &f, (struct store_page){ .limit = STORE_PAGE_MAX }, &l, err) < 0)
		return -1;
	for (size_t i = 0; i < l.count; i++)
		others += !is_requested(w, id, &l.items[i]);
	if (others < w->max_active_per_user)
		return 0;
	if (w->on_exceed == SESSION_EXCEED_REFUSE)
		return err_set(err, ERR_LIMIT, "user %s has %zu active sessions (limit %u)",
			       w->user, others, w->max_active_per_user);
	return replace_others(e, caller, &l, w, id, others - w->max_active_per_user + 1, err);
}

static int user_slot_acquire(struct engine *e, const struct caller *caller,
			     const struct store_session *s, struct name_lock *ret, struct err *err)
{
	auto_fini(policy_rules_fini) struct policy_rules r;
	struct session_opts w = { .user = s->user };

	if (policy_rules_load(e, s->tenant, s->policy, &r, err) < 0)
		return -1;
	w.max_active_per_user = (unsigned)r.policy.max_active_per_user;
	w.on_exceed = (enum session_exceed_action)r.policy.on_exceed;
	user_slot_lock(e, ret, caller, s->user);
	if (!w.max_active_per_user || user_slot_free_one(e, caller, &w, s->id, err) == 0)
		return 0;
	name_unlock(ret);
	return -1;
}

int user_slot_acquire_ref(struct engine *e, const struct caller *caller,
			  const struct session_ref *ref, int64_t if_version, struct session **ret,
			  struct name_lock *slot, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	auto_call(session_unlock) struct session *n = NULL;
	struct session_ref by_id = { .id = s.id };

	if (session_lock_reconciled(e, caller, ref, if_version, &n, err) < 0)
		return -1;
	if (!*n->rec.policy || !*n->rec.user || n->rec.state == SESSION_ACTIVE) {
		*ret = steal_ptr(&n);
		return 0;
	}
	if (store_session_copy(&n->rec, &s, err) < 0)
		return -1;
	session_unlock(steal_ptr(&n)); /* a holder of a session's lock must not wait for another */
	if (user_slot_acquire(e, caller, &s, slot, err) < 0)
		return -1;
	if (session_lock_reconciled(e, caller, &by_id, if_version, ret, err) == 0)
		return 0;
	name_unlock(slot);
	return -1;
}
