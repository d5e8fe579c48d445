/* SPDX-License-Identifier: Apache-2.0 */
#include "admit/user_queue.h"

enum { QUEUE_MAX = 256 }; /* of one user: each holds a thread of the service */

static const char kind[] = "user_queue";

void user_queue_enter(struct user_queue_ticket *t, struct engine *e, const struct caller *caller,
		      const char *user)
{
	name_lock(e, &t->lock, kind, caller->tenant, user);
}

int user_queue_join(struct user_queue_ticket *t, struct engine *e, const struct caller *caller,
		    const char *user, struct err *err)
{
	if (name_lock_join(e, &t->lock, kind, caller->tenant, user, QUEUE_MAX))
		return 0;
	return err_set(
		err, ERR_UNAVAILABLE,
		"%d requests that move user %.64s are waiting already; try again in a moment",
		QUEUE_MAX, user);
}

void user_queue_wait(struct user_queue_ticket *t)
{
	name_lock_wait(&t->lock);
}

bool user_queue_is_last(const struct user_queue_ticket *t)
{
	return gate_is_last(&t->lock.ticket);
}

void user_queue_leave(struct user_queue_ticket *t)
{
	name_unlock(&t->lock);
}
