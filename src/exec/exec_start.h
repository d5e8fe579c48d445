/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_EXEC_EXEC_START_H
#define LODGE_EXEC_EXEC_START_H

#include "machine/exec_record.h"

/* entry_use(), and with `resume` in its place (admit/policy_rules.h), for rouse() to follow. */
int use_awake(struct engine *e, const struct caller *who, const struct session_ref *ref,
	      bool resume, struct entry **ret, struct place_turn *turn, struct err *err);
/* With the turn of n: a live sandbox that is not paused, and the session is in use. Without
 * `resume` ERR_CONFLICT if it sleeps. */
int rouse(struct entry *n, const struct caller *who, bool resume, enum session_outcome *ret,
	  struct err *err);

#endif
