/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_SWITCH_COMMIT_H
#define LODGE_PROJECT_SWITCH_COMMIT_H

#include "project/internal.h"

/* The session a user is on, and the user's working copy of a project. */
struct store_binding binding_of_user(const char *user);
int binding_of_copy(const char *user, const char *project, struct store_binding *ret,
		    struct err *err);
/* The session's id, or "". */
int binding_find_session(struct engine *e, const struct caller *who,
			 const struct store_binding *key, char ret[STORE_ID], struct err *err);
/* The user is on this session from now on. It took place when this returns 0, and did not when it
 * returns -1. */
int switch_commit(struct engine *e, const struct caller *who, const char *user, const char *session,
		  struct switch_commit_result *ret, struct err *err);
/* Brings to an end what an earlier switch of this user left half done. */
int switch_finish_pending(struct engine *e, const struct caller *who, const char *user,
			  struct err *err);

#endif
