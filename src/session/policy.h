/* SPDX-License-Identifier: Apache-2.0 */
/* Policies: what a tenant's sessions are under when they, or their template, name one. How many of
 * a user may be active, and the most that their limits and times may be. */
#ifndef LODGE_SESSION_POLICY_H
#define LODGE_SESSION_POLICY_H

#include "session/engine.h"

/* ERR_CONFLICT if the tenant has one of this name. Sets p->created_at. */
int policy_add(struct engine *e, const char *actor, struct store_policy *p, struct err *err);
int policy_get(struct engine *e, const char *tenant, const char *name, struct store_policy *ret,
	       struct err *err);
/* Of one tenant unless NULL. */
int policy_list(struct engine *e, const char *tenant, struct store_page page,
		struct store_policy_list *ret, struct err *err);
/* `edit` changes the record; it is for new sessions, and for the limits of others when they next
 * get a sandbox. *ret is for store_policy_fini(). */
typedef int policy_edit_fn(void *arg, struct store_policy *p, struct err *err);
int policy_change(struct engine *e, const char *actor, const char *tenant, const char *name,
		  policy_edit_fn *edit, void *arg, struct store_policy *ret, struct err *err);
/* ERR_CONFLICT while sessions or templates name it. */
int policy_remove(struct engine *e, const char *actor, const char *tenant, const char *name,
		  struct err *err);
/* How many sessions name it. */
int policy_sessions(struct engine *e, const struct store_policy *p, int64_t *ret, struct err *err);

/* store_policy.limits from the limits that `most` says, and back; `ret` is for template_fini(). */
int policy_set_limits(struct store_policy *p, const struct template *most, struct err *err);
int policy_limits(const struct store_policy *p, struct template *ret, struct err *err);

#endif
