/* SPDX-License-Identifier: Apache-2.0 */
#include "admit/policy_rules.h"

#include <stdio.h>
#include <string.h>

#include "admit/limits_max.h"

int policy_rules_load(struct engine *e, const char *tenant, const char *name,
		      struct policy_rules *ret, struct err *err)
{
	ret->policy = (struct store_policy){ 0 };
	template_init(&ret->limits);
	if (!*name)
		return 0;
	if (policy_get(e, tenant, name, &ret->policy, err) < 0)
		return -1;
	return policy_limits(&ret->policy, &ret->limits, err);
}

void policy_rules_fini(struct policy_rules *r)
{
	if (!r)
		return;
	store_policy_fini(&r->policy);
	template_fini(&r->limits);
}

int policy_rules_check(struct engine *e, const struct policy_rules *r, const struct template *asked,
		       struct err *err)
{
	const char *bad = asked ? template_exceeded_limit(asked, &r->limits) : NULL;

	if (asked && limits_max_check(e, asked, err) < 0)
		return -1;
	return bad ? err_set(err, ERR_INVALID, "limits.%s: more than policy \"%s\" allows", bad,
			     r->policy.name)
		   : 0;
}

int policy_rules_cap(struct engine *e, const struct policy_rules *r, struct template *t,
		     struct err *err)
{
	return template_cap(t, &r->limits, err) < 0 ? -1 : limits_max_cap(e, t, err);
}
