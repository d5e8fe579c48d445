/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as the engine applies it. */
#ifndef LODGE_ADMIT_POLICY_RULES_H
#define LODGE_ADMIT_POLICY_RULES_H

#include "engine/internal.h"
#include "admit/policy.h"

struct policy_rules {
	struct store_policy policy; /* name "": none */
	struct template limits; /* of the policy */
};

#define POLICY_DEFAULT_NAME "default"

/* name "": no rules. *ret is always fit for policy_rules_fini(). ERR_NOT_FOUND names the policy. */
int policy_rules_load(struct engine *e, const char *tenant, const char *name,
		      struct policy_rules *ret, struct err *err);
void policy_rules_fini(struct policy_rules *r);
DEFINE_AUTO(struct policy_rules *, policy_rules_fini);
/* ERR_INVALID if a request exceeds the limits of the policy, or those of all sessions (NULL: it
 * sets none). */
int policy_rules_check(struct engine *e, const struct policy_rules *r, const struct template *asked,
		       struct err *err);
/* Lowers limits to those of the policy, and to those of all sessions. */
int policy_rules_cap(struct engine *e, const struct policy_rules *r, struct template *t,
		     struct err *err);

/* Kind of the name_lock() that every change of templates and policies holds. */
#define TEMPLATES_LOCK "templates"

#endif
