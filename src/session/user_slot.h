/* SPDX-License-Identifier: Apache-2.0 */
/* One slot per user under a policy: taken before a session of the user is resumed. */
#ifndef LODGE_SESSION_USER_SLOT_H
#define LODGE_SESSION_USER_SLOT_H

#include "admit/policy_rules.h"
#include "engine/internal.h"

/* Before a session wakes that is under rules: the others of its user make place, and nobody takes
 * it until place_give(). Nobody's turn may be held. */
struct place_turn {
	struct engine *engine; /* NULL: nothing is held */
	char name[STORE_NAME + STORE_USER + 8];
};
/* What a caller of session_enter() is under: the rules of the session that is there, else those it
 * asks for, else its template's. *w gets what they say of times, number and user. `user` is the
 * memory for that. */
int rules_of(struct engine *e, const struct caller *who, struct session_want *w,
	     char user[STORE_USER], struct rules *ret, struct err *err);
bool place_is_needed(const struct store_session *s);
int place_take(struct engine *e, const struct caller *who, const struct store_session *s,
	       struct place_turn *ret, struct err *err);
/* entry_use() of a session that may wake, in its place. *turn is held until place_give(). */
int place_use(struct engine *e, const struct caller *who, const struct session_ref *ref,
	      int64_t if_version, struct entry **ret, struct place_turn *turn, struct err *err);
void place_give(struct place_turn *t);
DEFINE_AUTO(struct place_turn *, place_give);

#endif
