/* SPDX-License-Identifier: Apache-2.0 */
#include "admit/policy_rules.h"

#include <stdio.h>
#include <string.h>

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

int policy_rules_check(const struct policy_rules *r, const struct template *asked, struct err *err)
{
	const char *bad = asked ? template_exceeded_limit(asked, &r->limits) : NULL;

	return bad ? err_set(err, ERR_INVALID, "limits.%s: more than policy \"%s\" allows", bad,
			     r->policy.name)
		   : 0;
}
