/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_USERS_H
#define LODGE_PROJECT_USERS_H

#include "project/internal.h"

/* Inside WITH_STORE(): loads the user's record, or returns a new one that is not stored yet. */
int user_load(struct store *st, const char *tenant, const char *user, int64_t now,
	      struct store_user *ret, struct err *err);
/* Creates the user's record if it does not exist. */
int user_ensure(struct engine *e, const struct caller *who, const char *user, struct err *err);
/* Clears the active project and fragment. Creates no record. */
int user_clear_location(struct engine *e, const struct caller *who, const char *user,
			struct err *err);
void user_queue_join(struct user_queue_ticket *p, struct engine *e, const struct caller *who,
		     const char *user);
/* The same for a call from outside: ERR_UNAVAILABLE if too many of this user wait. */
int user_queue_enter(struct user_queue_ticket *p, struct engine *e, const struct caller *who,
		     const char *user, struct err *err);
void user_queue_leave(struct user_queue_ticket *p);
DEFINE_AUTO(struct user_queue_ticket *, user_queue_leave);

#endif
