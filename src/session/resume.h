/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_RESUME_H
#define LODGE_SESSION_RESUME_H

#include "engine/internal.h"

int wake(struct entry *n, const struct session_why *why, int64_t wait_ms, struct wake_result *ret,
	 struct err *err);
/* A new session: within the quotas, with its record; unless `asleep` its start is noted, and
 * wake_restore() comes next. The turn is the caller's. Steals *s on success. */
int wake_new(struct engine *e, struct store_session *s, const struct store_event *ev,
	     const struct session_why *why, bool asleep, struct entry **ret, struct err *err);
/* Like wake() for one that was moved to RESTORING already (rollback). */
int wake_restore(struct entry *n, struct wake_result *ret, struct err *err);

#endif
