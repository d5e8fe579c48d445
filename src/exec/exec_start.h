/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_EXEC_EXEC_START_H
#define LODGE_EXEC_EXEC_START_H

#include "machine/exec_record.h"

/* session_lock_reconciled(); with `resume` also acquires the user's slot, so that
 * session_ensure_running() can follow. */
int session_lock_for_use(struct engine *e, const struct caller *who, const struct session_ref *ref,
			 bool resume, struct session **ret, struct user_slot *slot,
			 struct err *err);
/* Call with n locked. Resumes and unpauses the session as needed and counts as a use of it.
 * ERR_CONFLICT if it is hibernated and `resume` is false. */
int session_ensure_running(struct session *n, const struct caller *who, bool resume,
			   enum session_outcome *ret, struct err *err);

#endif
