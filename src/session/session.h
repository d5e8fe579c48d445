/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_SESSION_H
#define LODGE_SESSION_SESSION_H

#include "engine/internal.h"

/* Waits for the turn. ERR_NOT_FOUND: no such record (or of another tenant, with tenant not NULL);
 * ERR_UNAVAILABLE: somebody had it for too long. session_unlock() ends it. */
int session_lock(struct engine *e, const char *tenant, const char *id, struct session **ret,
		 struct err *err);
/* The same by id or key; the tombstone's sentence if it is gone. */
int session_lock_ref(struct engine *e, const struct caller *who, const struct session_ref *ref,
		     struct session **ret, struct err *err);
/* The same, and the session is settled: its state is at rest or live, and true. */
int session_lock_reconciled(struct engine *e, const struct caller *who,
			    const struct session_ref *ref, int64_t if_version, struct session **ret,
			    struct err *err);
/* A fresh session: its record is written with `ev`; the turn is the caller's. Steals *s. */
int session_create(struct engine *e, struct store_session *s, const struct store_event *ev,
		   bool relaxed, struct session **ret, struct err *err);
/* The same for what somebody asked for: the event names the actor. */
int session_update_as(struct session *n, struct store_session *s, const char *kind,
		      const char *actor, struct err *err);
int session_transition(struct session *n, enum session_event ev,
		       const struct session_cause_opts *why, session_edit_fn *set, void *arg,
		       struct err *err);
/* Pushes the timers; written only when the store lags far enough behind. */
void session_touch(struct session *n);
int session_flush(struct session *n, struct err *err); /* writes it if it is dirty */
/* Reads the record again: somebody wrote it directly (rebind). */
int session_reload(struct session *n, struct err *err);
void session_forget(struct session *n); /* the record is removed */
void session_set_machine(struct session *n, struct machine *live);
/* Copies the published record of a session nobody has to have the turn of; 0 if there is no entry.
 */
int session_copy_record(struct engine *e, const char *id, struct store_session *ret);
void sessions_flush(struct engine *e); /* whatever is dirty */
void sessions_free(struct engine *e);
void session_each(struct engine *e, session_each_fn *fn, void *arg);

#endif
