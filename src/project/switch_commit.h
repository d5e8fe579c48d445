/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_SWITCH_COMMIT_H
#define LODGE_PROJECT_SWITCH_COMMIT_H

#include "project/internal.h"

/* What a session that a switch makes has for metadata until the user is on it. One with this mark
 * and without keys belongs to no switch that is still under way. */
#define SWITCH_MARK "lodge:switch"
#define SWITCH_PENDING "{\"" SWITCH_MARK "\":\"pending\"}"
#define SWITCH_REPLACED "{\"" SWITCH_MARK "\":\"replaced\"}"

struct switch_commit_result {
	char previous[STORE_ID]; /* session the user was on, "" if none or the same */
	char replaced[STORE_ID]; /* working copy that has no key any more */
	char sandbox[STORE_ID]; /* of the session, as it is now */
};

/* The user is on this session from now on. It took place when this returns 0, and did not when it
 * returns -1. */
int switch_commit(struct engine *e, const struct caller *who, const char *user, const char *session,
		  struct switch_commit_result *ret, struct err *err);
/* Brings to an end what an earlier switch of this user left half done. */
int switch_finish_pending(struct engine *e, const struct caller *who, const char *user,
			  struct err *err);

#endif
