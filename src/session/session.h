/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in memory: those in use, and those whose sandbox runs. */
#ifndef LODGE_SESSION_SESSION_H
#define LODGE_SESSION_SESSION_H

#include "engine/internal.h"
#include "engine/session_state.h"
#include "session/death.h"
#include "session/rows.h"
#include "session/session_api.h"

struct session {
	struct session *next; /* of its bucket */
	struct engine *engine;
	char id[STORE_ID];
	unsigned refs; /* engine.mutex */
	bool locked; /* session_lock(); engine.mutex */
	pthread_cond_t unlocked;
	bool loaded;
	/* The store's record, plus activity that is not written yet. Read with the session's
	 * lock or with engine.mutex; changed with both. */
	struct store_session rec;
	bool dirty; /* rec is ahead of the store in its timers */
	bool relaxed; /* its writes need not be synced yet: another one follows that is; likewise */
	bool stale; /* a write failed that may be in the store after all; with the session's lock */
	int64_t stored_due_at; /* due_at in the store while it is dirty */
	/* The keeper may carry out a change of its limits that failed; with the session's lock. */
	bool limits_unsure;
	bool has_capacity; /* it counts among the engine's active ones */
	/* Whether the files of rec.layer became those of the running sandbox, or are below them. */
	enum { LAYER_UNKNOWN, LAYER_TAKEN, LAYER_BELOW } layer_use;
	struct machine *machine; /* the connected sandbox; NULL: none. Changed like rec */
	unsigned probe_failures; /* probes in a row without an answer; with the session's lock */
	uint64_t cpu_us; /* of the sandbox when it was last due */
	int64_t cpu_sampled_at; /* when that was; 0: never */
	uint64_t disk_bytes; /* of its sandbox when that was ended; 0: unknown */
	int64_t probe_failed_at; /* clock_mono_ms() of the last failed probe */
	struct usage_sample sample; /* what its sandbox used; engine.mutex */
	struct usage_meter meter; /* how much of that is counted; engine.mutex */
	struct session_death
		death; /* of the sandbox that is being ended; with the session's lock */
	int64_t retry_at; /* a timer failed for this session and runs again at this time */
};

/* 1, or 0 if the session is locked or has no record; does not wait. */
int session_trylock(struct engine *e, const char *id, struct session **ret);
void session_unlock(struct session *n); /* NULL is allowed */
DEFINE_AUTO(struct session *, session_unlock);

/* The record changed in *s (a copy made by store_session_copy) is written with an event of this
 * kind, and published. Steals *s on success. */
int session_update(struct session *n, struct store_session *s, const char *kind, struct err *err);
/* The same on request: the event names the actor. */
int session_update_as(struct session *n, struct store_session *s, const char *kind,
		      const char *actor, struct err *err);
/* session_record_move() and the write. `set` (may be NULL) changes the record in between. */
typedef void session_edit_fn(struct store_session *s, void *arg);
int session_transition(struct session *n, enum session_event ev,
		       const struct session_cause_opts *why, session_edit_fn *set, void *arg,
		       struct err *err);

/* Waits for the lock. ERR_NOT_FOUND: no such record (or, with tenant not NULL, of another
 * tenant); ERR_UNAVAILABLE: it was locked for too long. */
int session_lock(struct engine *e, const char *tenant, const char *id, struct session **ret,
		 struct err *err);
/* The same by id or key; with the cause of the tombstone if it was destroyed. */
int session_lock_ref(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		     struct session **ret, struct err *err);
/* ERR_CONFLICT if if_version is neither 0 nor its version. */
int session_check_version(const struct session *n, int64_t if_version, struct err *err);
/* The same, reconciled: its state is at rest or active, and true. */
int session_lock_reconciled(struct engine *e, const struct caller *caller,
			    const struct session_ref *ref, int64_t if_version, struct session **ret,
			    struct err *err);
/* Creates a session and writes its record with `ev`; the caller gets it locked. Takes over *s. */
int session_create(struct engine *e, struct store_session *s, const struct store_event *ev,
		   bool relaxed, struct session **ret, struct err *err);
/* Pushes the timers; written only when the store lags far enough behind. */
void session_touch(struct session *n);
int session_flush(struct session *n, struct err *err); /* writes it if it is dirty */
/* When the timers check it. Written without an event: nothing happened. */
void session_set_due(struct session *n, int64_t due);
/* Reads the record again after a direct write (rebind). */
int session_reload(struct session *n, struct err *err);
void session_forget(struct session *n); /* the record is removed */
void session_set_machine(struct session *n, struct machine *machine);
/* Copies the published record without the session's lock; 0 if it is not in memory. */
int session_copy_record(struct engine *e, const char *id, struct store_session *ret);
/* The same, else the store's. */
int session_read_record(struct engine *e, const char *id, struct store_session *ret,
			struct err *err);
void sessions_flush(struct engine *e); /* whatever is dirty */
void sessions_free(struct engine *e);
/* Calls fn for every session in memory, with engine.mutex. */
typedef void session_each_fn(struct session *n, void *arg);
void session_each(struct engine *e, session_each_fn *fn, void *arg);
/* Calls fn for this session, with engine.mutex, if it is in memory. */
void session_with(struct engine *e, const char *id, session_each_fn *fn, void *arg);
/* Returns a reference to its connected sandbox; NULL: none. Takes no session lock. */
struct machine *session_find_machine(struct engine *e, const char *id);
/* Copies the record to *ret, unless ret is NULL. */
int session_return_record(struct session *n, struct store_session *ret, struct err *err);
/* What lies below the writable files of its sandbox: "" if nothing does. */
int session_base_layer(struct session *n, char ret[STORE_ID], struct err *err);
/* Charges its CPU time to its user, and counts what it used, before the sandbox is ended. */
void session_charge_cpu(struct session *n);
/* Closes the machine and releases its capacity. */
void session_end_machine(struct session *n);
/* Whether this key leads to it. */
bool session_is_bound(const struct store_session *s, const struct store_binding *key);
/* ERR_CONFLICT if it is not active: there is nothing to `action`. */
int session_require_active(const struct session *n, const char *action, struct err *err);

#endif
