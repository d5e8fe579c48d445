/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_RESUME_H
#define LODGE_SESSION_RESUME_H

#include "session/session.h"

struct resume_result {
	enum session_source source;
	uint64_t ready_us;
};

/* Starts a sandbox for a session that has none (NONE, HIBERNATED or FAILED), within its quotas and
 * the capacity. With the session's lock, as all of these. */
int resume_session(struct session *n, const struct session_cause_opts *why, int64_t wait_ms,
		   struct resume_result *ret, struct err *err);
/* A new session: within the quotas, with its record; unless `asleep` its start is noted, and
 * resume_restored() comes next. The turn is the caller's. Steals *s on success. */
int resume_new_session(struct engine *e, struct store_session *s, const struct store_event *ev,
		       const struct session_cause_opts *why, bool asleep, struct session **ret,
		       struct err *err);
/* Like resume_session() for one that was moved to RESTORING already (rollback). */
int resume_restored(struct session *n, struct resume_result *ret, struct err *err);

#endif
