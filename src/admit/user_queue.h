/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that change where a user is run one after the other, in the order in which they came: the
 * last one wins. */
#ifndef LODGE_ADMIT_USER_QUEUE_H
#define LODGE_ADMIT_USER_QUEUE_H

#include "base/err.h"
#include "engine/engine.h"
#include "engine/name_lock.h"

struct user_queue_ticket {
	struct name_lock lock;
};

/* Waits until all earlier callers of this user have left. */
void user_queue_join(struct user_queue_ticket *t, struct engine *e, const struct caller *caller,
		     const char *user);
/* The same for a request from outside: ERR_UNAVAILABLE if too many of this user wait. */
int user_queue_enter(struct user_queue_ticket *t, struct engine *e, const struct caller *caller,
		     const char *user, struct err *err);
void user_queue_leave(struct user_queue_ticket *t);
DEFINE_AUTO(struct user_queue_ticket *, user_queue_leave);

#endif
