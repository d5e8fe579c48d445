/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of a tenant: how many sessions of a user may be active, maximum limits and timeouts,
 * and which programs execs may start. A session is under the policy that it or its template
 * names. */
#ifndef LODGE_ADMIT_POLICY_H
#define LODGE_ADMIT_POLICY_H

#include "engine/engine.h"
#include "sandbox/template/template.h"
#include "shell/program_rules.h"

/* ERR_CONFLICT if the name exists. Sets p->created_at. */
int policy_add(struct engine *e, const char *actor, struct store_policy *p, struct err *err);
int policy_get(struct engine *e, const char *tenant, const char *name, struct store_policy *ret,
	       struct err *err);
/* Of one tenant unless NULL. */
int policy_list(struct engine *e, const char *tenant, struct store_page page,
		struct store_policy_list *ret, struct err *err);
/* `edit` changes the record. It applies to new sessions, and to the limits of others with their
 * next sandbox. *ret is for store_policy_fini(). */
typedef int policy_edit_fn(void *arg, struct store_policy *p, struct err *err);
int policy_change(struct engine *e, const char *actor, const char *tenant, const char *name,
		  policy_edit_fn *edit, void *arg, struct store_policy *ret, struct err *err);
/* ERR_CONFLICT while sessions or templates name it. */
int policy_remove(struct engine *e, const char *actor, const char *tenant, const char *name,
		  struct err *err);
/* How many sessions name it. */
int policy_sessions(struct engine *e, const struct store_policy *p, int64_t *ret, struct err *err);

/* store_policy.limits from the limits of a template, and back; `ret` is for template_fini(). */
int policy_set_limits(struct store_policy *p, const struct template *most, struct err *err);
int policy_limits(const struct store_policy *p, struct template *ret, struct err *err);

/* ---- commands --------------------------------------------------------------------------------
 *
 * Advice and enforcement. Each command of a session under such a policy is looked through before it
 * starts, and refused with ERR_DENIED, sys ENOEXEC, if it would start what the policy does not
 * allow. What its text does not tell the kernel sees to: with a list of what is allowed the command
 * cannot execute anything else, where there is Landlock. */

/* The word that caused a refusal. */
struct policy_refusal {
	char policy[STORE_NAME]; /* "": nothing was refused */
	char word[SHELL_NAME_MAX + 1]; /* cut */
	size_t offset;
	unsigned line, column; /* 0: it is not in the text, but in the environment */
	char reason[SHELL_TOLD_MAX];
};

#endif
