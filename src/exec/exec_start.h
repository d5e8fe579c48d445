/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_EXEC_EXEC_START_H
#define LODGE_EXEC_EXEC_START_H

#include "machine/exec_record.h"

/* session_lock_reconciled(), and with `resume` in its place (admit/policy_rules.h), for
 * session_ensure_running() to follow. */
int session_lock_for_use(struct engine *e, const struct caller *who, const struct session_ref *ref,
			 bool resume, struct session **ret, struct user_slot *turn,
			 struct err *err);
/* With the turn of n: a live sandbox that is not paused, and the session is in use. Without
 * `resume` ERR_CONFLICT if it sleeps. */
int session_ensure_running(struct session *n, const struct caller *who, bool resume,
			   enum session_outcome *ret, struct err *err);

#endif
