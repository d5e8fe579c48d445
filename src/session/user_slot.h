/* SPDX-License-Identifier: Apache-2.0 */
/* One slot per user under a policy: taken before a session of the user is resumed. */
#ifndef LODGE_SESSION_USER_SLOT_H
#define LODGE_SESSION_USER_SLOT_H

#include "admit/policy_rules.h"
#include "session/session.h"
#include "engine/name_lock.h"

/* session_lock_reconciled() for a session that may be resumed. Under a policy other sessions of its
 * user are hibernated if needed, and none is started until name_unlock(slot). The caller holds no
 * session lock. */
int user_slot_acquire_ref(struct engine *e, const struct caller *caller,
			  const struct session_ref *ref, int64_t if_version, struct session **ret,
			  struct name_lock *slot, struct err *err);
/* One caller at a time counts and starts sessions of a user. */
void user_slot_lock(struct engine *e, struct name_lock *l, const struct caller *caller,
		    const char *user);
/* Under the user's policy: others of the user are hibernated, or it is refused. `id`: what a new
 * one would get. */
int user_slot_free_one(struct engine *e, const struct caller *caller, const struct session_opts *w,
		       const char *id, struct err *err);

#endif
