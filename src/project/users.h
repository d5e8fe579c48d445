/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_USERS_H
#define LODGE_PROJECT_USERS_H

#include "project/internal.h"

/* Inside WITH_STORE(): what is known of the user, or a fresh record that is not written yet. */
int user_load(struct store *st, const char *tenant, const char *user, int64_t now,
	      struct store_user *ret, struct err *err);
/* Makes the user if nobody knows them. */
int user_ensure(struct engine *e, const struct caller *who, const char *user, struct err *err);
/* Where the user is from now on; both "" for nowhere. One that nobody knows is left unknown. */
int user_leave(struct engine *e, const struct caller *who, const char *user, struct err *err);

#endif
