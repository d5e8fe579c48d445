/* SPDX-License-Identifier: Apache-2.0 */
#include "session/user_slot.h"

#include <stdio.h>
#include <string.h>

#include "session/session_opts.h"
#include "engine/name_lock.h"
#include "session/session.h"

/* The session that the call leads to, as it is now; false: a new one, as far as one can see. */
static bool leads_somewhere(struct engine *e, const struct caller *who,
			    const struct session_opts *w, struct store_session *ret)
{
	struct session_ref pin = { .id = w->pin };
	struct err ignored;

	for (size_t i = 0; i < w->nkeys; i++) {
		struct session_ref ref = { .kind = w->keys[i].kind, .key = w->keys[i].key };

		if (session_get(e, who, &ref, ret, &ignored) == 0)
			return true;
	}
	return !w->nkeys && w->pin && session_get(e, who, &pin, ret, &ignored) == 0;
}

static int of_template(struct engine *e, const struct caller *who, const struct session_opts *w,
		       char ret[STORE_NAME], struct err *err)
{
	auto_fini(template_fini) struct template t;
	char name[STORE_ID];

	template_init(&t);
	if (session_opts_template(e, who, w, name, err) < 0 ||
	    template_load(e->home, name, &t, err) < 0)
		return -1;
	if (t.policy && strlen(t.policy) >= STORE_NAME)
		return err_set(err, ERR_INVALID, "template \"%s\": its policy has no name", name);
	snprintf(ret, STORE_NAME, "%s", t.policy ? t.policy : "");
	return 0;
}

/* The smaller number counts; what becomes of one too many is the policy's to say. */
static void set_number(struct session_opts *w, const struct store_policy *p)
{
	if (!p->max_active_per_user)
		return;
	if (!w->max_active_per_user || w->max_active_per_user > p->max_active_per_user)
		w->max_active_per_user = (unsigned)p->max_active_per_user;
	w->on_exceed = (enum session_exceed_action)p->on_exceed;
}

static int set_new(struct session_opts *w, const struct policy_rules *r, struct err *err)
{
	const struct store_policy *p = &r->policy;

	if (p->max_active_per_user && !w->user)
		return err_set(err, ERR_INVALID,
			       "user: missing, and policy \"%s\" counts the sessions of each",
			       p->name);
	w->idle_timeout_ms = policy_rules_clamp_ms(w->idle_timeout_ms, p->idle_timeout_ms);
	w->max_lifetime_ms = policy_rules_clamp_ms(w->max_lifetime_ms, p->max_lifetime_ms);
	return policy_rules_check(r, w->overrides, err);
}

/* One of this name is for all sessions of its tenant that are under no other. */
static int of_tenant(struct engine *e, const struct caller *who, char name[STORE_NAME],
		     struct err *err)
{
	struct store_policy p;

	if (policy_get(e, who->tenant, POLICY_DEFAULT_NAME, &p, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	snprintf(name, STORE_NAME, "%s", p.name);
	store_policy_fini(&p);
	return 0;
}

int policy_rules_for_opts(struct engine *e, const struct caller *who, struct session_opts *w,
			  char user[STORE_USER], struct policy_rules *ret, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	bool there = leads_somewhere(e, who, w, &s);
	char name[STORE_NAME] = "";

	if (there)
		snprintf(name, sizeof(name), "%s", s.policy);
	else if (w->policy)
		snprintf(name, sizeof(name), "%s", w->policy);
	else if (!w->no_policy && (of_template(e, who, w, name, err) < 0 ||
				   (!*name && of_tenant(e, who, name, err) < 0)))
		return -1;
	if (policy_rules_load(e, who->tenant, name, ret, err) < 0)
		return err_ctx(err, "%s", !there && !w->policy ? "template" : "policy");
	if (there && !w->user && *s.user && ret->policy.max_active_per_user) {
		snprintf(user, STORE_USER, "%s", s.user);
		w->user = user;
	}
	set_number(w, &ret->policy);
	return there ? 0 : set_new(w, ret, err);
}

static bool user_slot_is_needed(const struct store_session *s)
{
	return *s->policy && *s->user && s->state != SESSION_ACTIVE;
}

static int make_place(struct engine *e, const struct caller *who, const struct store_session *s,
		      const struct store_policy *p, struct err *err)
{
	struct session_opts w = { .user = s->user,
				  .max_active_per_user = (unsigned)p->max_active_per_user,
				  .on_exceed = (enum session_exceed_action)p->on_exceed };

	return p->max_active_per_user ? user_slot_free_one(e, who, &w, s->id, err) : 0;
}

static int user_slot_acquire(struct engine *e, const struct caller *who,
			     const struct store_session *s, struct user_slot *ret, struct err *err)
{
	auto_fini(policy_rules_fini) struct policy_rules r;

	if (policy_rules_load(e, s->tenant, s->policy, &r, err) < 0)
		return -1;
	user_slot_lock(e, &ret->lock, who, s->user);
	if (make_place(e, who, s, &r.policy, err) == 0)
		return 0;
	user_slot_release(ret);
	return -1;
}

int user_slot_acquire_ref(struct engine *e, const struct caller *who, const struct session_ref *ref,
			  int64_t if_version, struct session **ret, struct user_slot *turn,
			  struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	auto_call(session_unlock) struct session *n = NULL;
	struct session_ref by_id = { .id = s.id };

	if (session_lock_reconciled(e, who, ref, if_version, &n, err) < 0)
		return -1;
	if (!user_slot_is_needed(&n->rec)) {
		*ret = steal_ptr(&n);
		return 0;
	}
	if (store_session_copy(&n->rec, &s, err) < 0)
		return -1;
	session_unlock(steal_ptr(&n)); /* who has a turn waits for no other */
	if (user_slot_acquire(e, who, &s, turn, err) < 0)
		return -1;
	if (session_lock_reconciled(e, who, &by_id, if_version, ret, err) == 0)
		return 0;
	user_slot_release(turn);
	return -1;
}

void user_slot_release(struct user_slot *t)
{
	if (t)
		name_unlock(&t->lock);
}
