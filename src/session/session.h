/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_SESSION_H
#define LODGE_SESSION_SESSION_H

#include "engine/internal.h"

/* Waits for the turn. ERR_NOT_FOUND: no such record (or of another tenant, with tenant not NULL);
 * ERR_UNAVAILABLE: somebody had it for too long. entry_give() ends it. */
int entry_take(struct engine *e, const char *tenant, const char *id, struct entry **ret,
	       struct err *err);
/* The same by id or key; the tombstone's sentence if it is gone. */
int entry_find(struct engine *e, const struct caller *who, const struct session_ref *ref,
	       struct entry **ret, struct err *err);
/* The same, and the session is settled: its state is at rest or live, and true. */
int entry_use(struct engine *e, const struct caller *who, const struct session_ref *ref,
	      int64_t if_version, struct entry **ret, struct err *err);
/* A fresh session: its record is written with `ev`; the turn is the caller's. Steals *s. */
int entry_create(struct engine *e, struct store_session *s, const struct store_event *ev,
		 bool relaxed, struct entry **ret, struct err *err);
/* The same for what somebody asked for: the event names the actor. */
int entry_change(struct entry *n, struct store_session *s, const char *kind, const char *actor,
		 struct err *err);
int entry_move(struct entry *n, enum session_event ev, const struct session_why *why,
	       entry_set_fn *set, void *arg, struct err *err);
/* Pushes the timers; written only when the store lags far enough behind. */
void entry_touch(struct entry *n);
int entry_flush(struct entry *n, struct err *err); /* writes it if it is dirty */
/* Reads the record again: somebody wrote it directly (rebind). */
int entry_reload(struct entry *n, struct err *err);
void entry_forget(struct entry *n); /* the record is removed */
void entry_set_live(struct entry *n, struct live *live);
/* Copies the published record of a session nobody has to have the turn of; 0 if there is no entry.
 */
int entry_peek(struct engine *e, const char *id, struct store_session *ret);
void entries_flush(struct engine *e); /* whatever is dirty */
void entries_free(struct engine *e);
void entry_each(struct engine *e, entry_each_fn *fn, void *arg);

#endif
