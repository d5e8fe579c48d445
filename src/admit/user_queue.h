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
void user_queue_enter(struct user_queue_ticket *t, struct engine *e, const struct caller *caller,
		      const char *user);
/* The same in two steps, for a request from outside: takes a place without blocking, or
 * ERR_UNAVAILABLE if too many of this user wait; then waits. */
int user_queue_join(struct user_queue_ticket *t, struct engine *e, const struct caller *caller,
		    const char *user, struct err *err);
void user_queue_wait(struct user_queue_ticket *t);
/* Whether nothing that moves this user was asked for since: see gate_is_last(). */
bool user_queue_is_last(const struct user_queue_ticket *t);
void user_queue_leave(struct user_queue_ticket *t);
DEFINE_AUTO(struct user_queue_ticket *, user_queue_leave);

#endif
