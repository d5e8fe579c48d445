/* SPDX-License-Identifier: Apache-2.0 */
/* One slot per user under a policy: taken before a session of the user is resumed. */
#ifndef LODGE_SESSION_USER_SLOT_H
#define LODGE_SESSION_USER_SLOT_H

#include "admit/policy_rules.h"
#include "session/session.h"
#include "engine/name_lock.h"

/* Before a session wakes that is under rules: the others of its user make place, and nobody takes
 * it until user_slot_release(). Nobody's turn may be held. */
struct user_slot {
	struct name_lock lock;
};
/* What a caller of session_enter() is under: the rules of the session that is there, else those it
 * asks for, else its template's. *w gets what they say of times, number and user. `user` is the
 * memory for that. */
int policy_rules_for_opts(struct engine *e, const struct caller *who, struct session_opts *w,
			  char user[STORE_USER], struct policy_rules *ret, struct err *err);
/* session_lock_reconciled() of a session that may wake, in its place. *turn is held until
 * user_slot_release(). */
int user_slot_acquire_ref(struct engine *e, const struct caller *who, const struct session_ref *ref,
			  int64_t if_version, struct session **ret, struct user_slot *turn,
			  struct err *err);
void user_slot_release(struct user_slot *t);
DEFINE_AUTO(struct user_slot *, user_slot_release);

#endif
