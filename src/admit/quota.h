/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas of users and tenants, and their usage. */
#ifndef LODGE_ADMIT_QUOTA_H
#define LODGE_ADMIT_QUOTA_H

#include "engine/engine.h"

int quota_set(struct engine *e, const struct store_quota *q, struct err *err);
int quota_get(struct engine *e, const char *tenant, const char *user, struct store_quota *ret,
	      struct store_usage *ret_usage, struct err *err);

/* Bits of the states in which a session counts as active. */
uint64_t quota_active_states(void);
/* ERR_LIMIT if a session of this size exceeds a quota of its user or tenant. `no_start`: it gets no
 * sandbox, so only its files count. */
int quota_check(struct engine *e, const struct store_session *s, bool is_new, bool no_start,
		struct err *err);
/* Charges CPU time of a sandbox to the user of the session. */
void quota_charge(struct engine *e, const struct store_session *s, uint64_t cpu_us);

#endif
