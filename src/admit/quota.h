/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_ADMIT_QUOTA_H
#define LODGE_ADMIT_QUOTA_H

#include "engine/internal.h"

/* Whether one more of this session's size is within the quotas of its user and tenant. */
int quota_check(struct engine *e, const struct store_session *s, bool is_new, bool asleep,
		struct err *err);
/* CPU time used by the sandbox so far goes to the user's account, once. */
void quota_charge(struct engine *e, const struct store_session *s, uint64_t cpu_us);

#endif
