/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_BINDING_H
#define LODGE_PROJECT_BINDING_H

#include "engine/internal.h"

/* The session a user is on, and the user's working copy of a project. */
struct store_binding binding_of_user(const char *user);
int binding_of_copy(const char *user, const char *project, struct store_binding *ret,
		    struct err *err);
/* The session's id, or "". */
int binding_find_session(struct engine *e, const struct caller *who,
			 const struct store_binding *key, char ret[STORE_ID], struct err *err);

#endif
