/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's sandboxes are like: its template, what the session says over it, and the most
 * that its policy and the settings allow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admit/policy_rules.h"
#include "session/session.h"
#include "sandbox/template/template_json.h"

static int cap(struct engine *e, const struct store_session *s, struct template *t, struct err *err)
{
	auto_fini(policy_rules_fini) struct policy_rules r;

	if (policy_rules_load(e, s->tenant, s->policy, &r, err) < 0)
		return -1;
	return policy_rules_cap(e, &r, t, err);
}

int spec_load(struct engine *e, const struct store_session *s, struct template *ret,
	      struct err *err)
{
	auto_fini(template_fini) struct template base, over;

	template_init(&base);
	template_init(&over);
	if (template_load(e->home, *s->template ? s->template : "host", &base, err) < 0 ||
	    (s->spec && template_parse("session", s->spec, strlen(s->spec), &over, err) < 0) ||
	    template_merge(&base, &over, err) < 0 || cap(e, s, &base, err) < 0)
		return -1;
	limits_fit_output(&base.limits);
	template_fini(ret);
	*ret = steal_struct(&base);
	return 0;
}

int spec_limits(struct engine *e, const struct store_session *s, struct limits *ret,
		struct err *err)
{
	struct sandbox_spec full = sandbox_spec_default();
	auto_fini(template_fini) struct template all;

	template_init(&all);
	if (spec_load(e, s, &all, err) < 0 || template_apply(&all, &full, err) < 0)
		return -1;
	*ret = full.limits;
	return 0;
}

void session_limits(struct engine *e, const struct store_session *s, struct limits *ret)
{
	struct err ignored;

	if (spec_limits(e, s, ret, &ignored) < 0)
		*ret = limits_default();
	/* these are the ones that count, until it gets another sandbox */
	if (s->memory_bytes)
		ret->memory_bytes = (uint64_t)s->memory_bytes;
	if (s->disk_bytes)
		ret->disk_bytes = (uint64_t)s->disk_bytes;
	limits_fit_output(ret);
}

int spec_base(struct engine *e, const struct store_session *s, char ret[STORE_ID], struct err *err)
{
	struct store_layer l = { 0 };

	snprintf(l.template, sizeof(l.template), "%s", *s->template ? s->template : "host");
	if (*s->layer && STORE_CALL(e, store_layer_get, s->layer, &l, err) < 0)
		return -1;
	memcpy(ret, l.template, sizeof(l.template));
	return 0;
}

int spec_refresh(struct session *n, struct err *err)
{
	struct sandbox_spec spec = sandbox_spec_default();
	auto_fini(store_session_fini) struct store_session s = { 0 };
	auto_fini(template_fini) struct template t;
	bool bare;

	template_init(&t);
	if (spec_load(n->engine, &n->rec, &t, err) < 0 || template_apply(&t, &spec, err) < 0)
		return -1;
	bare = t.layer && !*n->rec.layer; /* its files were lost: it begins anew */
	if (!bare && n->rec.memory_bytes == (int64_t)spec.limits.memory_bytes &&
	    n->rec.disk_bytes == (int64_t)spec.limits.disk_bytes)
		return 0;
	if (store_session_copy(&n->rec, &s, err) < 0)
		return -1;
	s.memory_bytes = (int64_t)spec.limits.memory_bytes;
	s.disk_bytes = (int64_t)spec.limits.disk_bytes;
	if (bare)
		snprintf(s.layer, sizeof(s.layer), "%s", t.layer);
	return session_update(n, &s, "change", err);
}
