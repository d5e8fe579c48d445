/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_RESUME_H
#define LODGE_SESSION_RESUME_H

#include "session/session.h"

struct name_lock;

struct resume_result {
	enum session_source source;
	uint64_t ready_us;
};

/* Starts a sandbox for a session that has none (NONE, HIBERNATED or FAILED), within its quotas and
 * the capacity. With the session's lock, as all of these. */
int resume_session(struct session *n, const struct session_cause_opts *why, int64_t wait_ms,
		   struct resume_result *ret, struct err *err);
/* Creates a session within its quotas; unless `no_start` its start is recorded, and
 * resume_restored() comes next. The caller gets it locked. Takes over *s on success. */
int resume_new_session(struct engine *e, struct store_session *s, const struct store_event *ev,
		       const struct session_cause_opts *why, bool no_start, struct session **ret,
		       struct err *err);
/* Like resume_session() for one that was moved to RESTORING already (rollback). */
int resume_restored(struct session *n, struct resume_result *ret, struct err *err);
/* session_lock_reconciled(); with `resume` also acquires the user's slot, so that
 * session_ensure_running() can follow. */
int session_lock_for_use(struct engine *e, const struct caller *caller,
			 const struct session_ref *ref, bool resume, struct session **ret,
			 struct name_lock *slot, struct err *err);
/* Call with n locked. Resumes and unpauses the session as needed and counts as a use of it.
 * ERR_CONFLICT if it is hibernated and `resume` is false. */
int session_ensure_running(struct session *n, const struct caller *caller, bool resume,
			   enum session_outcome *ret, struct err *err);

#endif
