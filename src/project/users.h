/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_USERS_H
#define LODGE_PROJECT_USERS_H

#include "engine/internal.h"

/* Inside WITH_STORE(): loads the user's record, or returns a new one that is not stored yet. */
int user_load(struct store *st, const char *tenant, const char *user, int64_t now,
	      struct store_user *ret, struct err *err);
/* Creates the user's record if it does not exist. */
int user_ensure(struct engine *e, const struct caller *caller, const char *user, struct err *err);
/* Clears the active project and fragment. Creates no record. */
int user_clear_location(struct engine *e, const struct caller *caller, const char *user,
			struct err *err);

#endif
