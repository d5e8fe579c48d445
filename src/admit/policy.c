/* SPDX-License-Identifier: Apache-2.0 */
#include "admit/policy.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admit/limits_max.h"
#include "admit/policy_rules.h"
#include "engine/name_check.h"
#include "engine/name_lock.h"
#include "sandbox/template/template_json.h"
#include "engine/audit.h"

/* ---- limits ---------------------------------------------------------------------------------- */

int policy_set_limits(struct store_policy *p, const struct template *most, struct err *err)
{
	auto_fini(template_fini) struct template only;
	char *text = NULL;

	template_init(&only);
	only.limits = most->limits;
	only.limits_set = most->limits_set;
	if (most->limits_set && template_print(&only, &text, err) < 0)
		return -1;
	free(p->limits);
	p->limits = text;
	return 0;
}

int policy_limits(const struct store_policy *p, struct template *ret, struct err *err)
{
	template_init(ret);
	if (!p->limits)
		return 0;
	return template_parse("policy", p->limits, strlen(p->limits), ret, err);
}

/* ---- administration -------------------------------------------------------------------------- */

static int not_found(const char *name, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "no policy \"%.64s\"", name);
}

static int check(const struct store_policy *p, struct err *err)
{
	if (name_check("tenant", p->tenant, sizeof(p->tenant), err) < 0 ||
	    name_check("name", p->name, sizeof(p->name), err) < 0)
		return -1;
	if (strchr(p->name, '/'))
		return err_set(err, ERR_INVALID, "name: without a slash");
	if (p->max_active_per_user < 0 || p->max_active_per_user > INT_MAX ||
	    p->idle_timeout_ms < 0 || p->max_lifetime_ms < 0)
		return err_set(err, ERR_INVALID, "a number is out of range");
	if (*p->network && strcmp(p->network, "none") != 0)
		return err_set(err, ERR_INVALID, "network: only \"none\" is possible");
	return 0;
}

/* Limits from before a maximum was lowered (`was`) stay: the lower one counts. */
static int check_limits(struct engine *e, const struct store_policy *p, const char *was,
			struct err *err)
{
	auto_fini(template_fini) struct template most;

	if (policy_limits(p, &most, err) < 0)
		return -1;
	return was && p->limits && strcmp(was, p->limits) == 0 ? 0
							       : limits_max_check(e, &most, err);
}

static int audit(struct engine *e, const char *tenant, const char *actor, const char *policy,
		 const char *what, struct err *err)
{
	char text[STORE_TEXT];

	snprintf(text, sizeof(text), "policy %.64s was %s", policy, what);
	return audit_write(e, tenant, "policy", actor, text, err);
}

int policy_add(struct engine *e, const char *actor, struct store_policy *p, struct err *err)
{
	p->created_at = engine_now(e);
	if (check(p, err) < 0 || check_limits(e, p, NULL, err) < 0 ||
	    audit(e, p->tenant, actor, p->name, "made", err) < 0)
		return -1;
	return STORE_CALL(e, store_policy_add, p, err);
}

int policy_get(struct engine *e, const char *tenant, const char *name, struct store_policy *ret,
	       struct err *err)
{
	int r = STORE_CALL(e, store_policy_get, tenant, name, ret, err);

	return r < 0 && err->code == ERR_NOT_FOUND ? not_found(name, err) : r;
}

int policy_list(struct engine *e, const char *tenant, struct store_page page,
		struct store_policy_list *ret, struct err *err)
{
	return STORE_CALL(e, store_policy_list, tenant, page, ret, err);
}

int policy_sessions(struct engine *e, const struct store_policy *p, int64_t *ret, struct err *err)
{
	struct store_session_filter f = { .tenant = p->tenant, .policy = p->name };

	return STORE_CALL(e, store_session_count, &f, ret, err);
}

int policy_change(struct engine *e, const char *actor, const char *tenant, const char *name,
		  policy_edit_fn *edit, void *arg, struct store_policy *ret, struct err *err)
{
	auto_fini(store_policy_fini) struct store_policy p = { 0 };
	auto_fini(name_unlock) struct name_lock lock;
	auto_free char *was = NULL;

	name_lock(e, &lock, TEMPLATES_LOCK, NULL, "");
	if (policy_get(e, tenant, name, &p, err) < 0)
		return -1;
	was = p.limits ? strdup(p.limits) : NULL;
	if (edit(arg, &p, err) < 0 || check(&p, err) < 0 || check_limits(e, &p, was, err) < 0 ||
	    audit(e, tenant, actor, p.name, "changed", err) < 0 ||
	    STORE_CALL(e, store_policy_update, &p, err) < 0)
		return -1;
	*ret = steal_struct(&p);
	return 0;
}

struct search {
	struct engine *engine;
	const char *policy;
	char found[STORE_ID];
};

static int match_template(void *arg, const char *name)
{
	struct search *s = arg;
	auto_fini(template_fini) struct template t;
	struct err ignored;

	template_init(&t);
	if (template_load(s->engine->home, name, &t, &ignored) == 0 && t.policy &&
	    strcmp(t.policy, s->policy) == 0)
		snprintf(s->found, sizeof(s->found), "%s", name);
	return *s->found != '\0';
}

/* Templates belong to no tenant: they name a policy of the tenant that uses them. */
static int check_not_named(struct engine *e, const char *name, struct err *err)
{
	struct search s = { .engine = e, .policy = name };

	if (template_each(e->home, match_template, &s, err) < 0)
		return -1;
	return *s.found ? err_set(err, ERR_CONFLICT, "policy \"%s\" is named by template \"%s\"",
				  name, s.found)
			: 0;
}

int policy_remove(struct engine *e, const char *actor, const char *tenant, const char *name,
		  struct err *err)
{
	auto_fini(store_policy_fini) struct store_policy p = { 0 };
	auto_fini(name_unlock) struct name_lock lock;
	struct err ignored;

	name_lock(e, &lock, TEMPLATES_LOCK, NULL, "");
	if (policy_get(e, tenant, name, &p, err) < 0 || check_not_named(e, name, err) < 0 ||
	    STORE_CALL(e, store_policy_remove, tenant, name, err) < 0)
		return -1;
	(void)audit(e, tenant, actor, name, "removed", &ignored);
	return 0;
}
