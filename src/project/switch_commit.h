/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_SWITCH_COMMIT_H
#define LODGE_PROJECT_SWITCH_COMMIT_H

#include "project/project.h"

/* Metadata of a session that a switch created, until the switch is complete. After that switch, a
 * session with a mark and without keys is garbage. */
#define SWITCH_MARK "lodge:switch"
#define SWITCH_PENDING "{\"" SWITCH_MARK "\":\"pending\"}"
#define SWITCH_REPLACED "{\"" SWITCH_MARK "\":\"replaced\"}"

struct switch_commit_result {
	char previous[STORE_ID]; /* session that was active before, "" if none or the same */
	char replaced[STORE_ID]; /* former working copy, which has no key now */
	char sandbox[STORE_ID]; /* of the new active session */
};

/* These two need the user's queue.
 *
 * Makes the session the user's active one. The switch has taken place if this returns 0, and has
 * not if it returns -1. */
int switch_commit(struct engine *e, const struct caller *caller, const char *user,
		  const char *session, struct switch_commit_result *ret, struct err *err);
/* Finishes or undoes an interrupted switch of this user. */
int switch_finish_pending(struct engine *e, const struct caller *caller, const char *user,
			  struct err *err);

/* At startup: finishes or undoes switches that were interrupted when the last engine ended. */
int switch_recover(struct engine *e, struct err *err);

#endif
