/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_BINDING_H
#define LODGE_PROJECT_BINDING_H

#include "engine/internal.h"

/* The keys of a user's active session and of the user's working copy of a project. */
struct store_binding binding_of_user(const char *user);
int binding_of_copy(const char *user, const char *project, struct store_binding *ret,
		    struct err *err);
/* Returns the session's id, or "" if the key is unbound. */
int binding_find_session(struct engine *e, const struct caller *caller,
			 const struct store_binding *key, char ret[STORE_ID], struct err *err);

#endif
