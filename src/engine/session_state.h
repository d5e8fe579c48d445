/* SPDX-License-Identifier: Apache-2.0 */
/* States of a session, the events between them, and their effect on the record. Pure functions:
 * the caller writes the record by compare-and-set afterwards. */
#ifndef LODGE_ENGINE_SESSION_STATE_H
#define LODGE_ENGINE_SESSION_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/state_machine.h"
#include "engine/session_ref.h"
#include "store/record.h"

/* The store has the numbers of these enums: append new ones. */
enum session_state {
	SESSION_NONE, /* never had a sandbox, or nothing is left of it */
	SESSION_PROVISIONING,
	SESSION_ACTIVE,
	SESSION_HIBERNATING,
	SESSION_HIBERNATED,
	SESSION_RESTORING,
	SESSION_ARCHIVED, /* never evaluated nor resumed */
	SESSION_FAILED,
	SESSION_DESTROYING, /* has its tombstone; the record is removed last */
	SESSION_STATES,
};

enum session_runtime {
	SESSION_RUNTIME_NONE,
	SESSION_RUNTIME_RESUMABLE,
	SESSION_RUNTIME_LIVE,
};

enum session_end { /* of on_idle and on_expire */
		   SESSION_END_HIBERNATE,
		   SESSION_END_DESTROY,
};

enum session_event {
	SESSION_START, /* create or resume was requested */
	SESSION_READY, /* the sandbox responds */
	SESSION_ERROR, /* the operation in progress failed */
	SESSION_USE, /* exec, file call, get-or-create, activity, extend */
	SESSION_EVENT_HIBERNATE, /* due, or requested */
	SESSION_EVENT_NOT_DUE, /* checked again with the lock: no longer due */
	SESSION_SEALED, /* files sealed, processes stopped */
	SESSION_ALIVE, /* a probe found it alive */
	SESSION_GONE, /* a probe or a use found it gone */
	SESSION_ROLLBACK, /* to one of its snapshots was requested */
	SESSION_ARCHIVE, /* was requested */
	SESSION_UNARCHIVE, /* was requested */
	SESSION_DESTROY, /* was requested, or is due */
	SESSION_EVENTS,
};

enum session_cause {
	SESSION_CAUSE_NONE,
	SESSION_CAUSE_REQUESTED, /* a caller requested it */
	SESSION_CAUSE_IDLE, /* its idle timeout passed */
	SESSION_CAUSE_EXPIRED, /* its lifetime passed */
	SESSION_CAUSE_REPLACED, /* another session of the same user replaced it */
	SESSION_CAUSE_CAPACITY, /* hibernated to make room for another */
	SESSION_CAUSE_GONE, /* the sandbox no longer exists */
	SESSION_CAUSE_STOPPED, /* the sandbox exists but its processes do not */
	SESSION_CAUSE_UNAVAILABLE, /* too many failed probes */
	SESSION_CAUSE_INTERRUPTED, /* the engine stopped during the operation */
	SESSION_CAUSE_ERROR, /* an operation failed; the text says which */
	SESSION_CAUSE_CLEANUP, /* the sandboxes of its user were killed */
	SESSION_CAUSE_RETENTION, /* it was hibernated for as long as it is kept */
	SESSION_CAUSES,
};

/* How a sandbox ended: the cause or, of one that ended by itself, what is known beyond it. */
enum session_death_code {
	SESSION_DEATH_OOM = SESSION_CAUSES,
	SESSION_DEATH_KILLED,
	SESSION_DEATH_EXITED,
	SESSION_DEATH_HOST_RESTARTED,
	SESSION_DEATH_DISK_FULL,
	SESSION_DEATHS,
};

/* The files of sessions in these states are in a sandbox, not in a layer. */
#define SESSION_LIVE_STATES (SM_BIT(SESSION_ACTIVE) | SM_BIT(SESSION_HIBERNATING))

/* How the last sandbox ended. A caller that comes back must know whether it is gone on request. */
enum session_ended {
	SESSION_ENDED_NOT, /* one runs, or there never was one */
	SESSION_ENDED_BY_CALL, /* for this session: stop, hibernate, archive, snapshot */
	SESSION_ENDED_OTHERWISE, /* it died, timed out, was evicted, or an administrator ended it */
};

enum {
	SESSION_EXPIRY_BUFFER_MS = 10000,
	SESSION_UNFINISHED_MS = 30000, /* after which the timers check an unfinished operation */
};

/* All transitions that are allowed; any other is a bug. */
extern const struct state_machine session_states;

const char *session_event_name(enum session_event ev);
const char *session_cause_name(enum session_cause cause);
/* The code of a cause in a sentence: "by request"; others are words already. */
const char *session_cause_phrase(const char *code);
/* Of an enum session_cause or an enum session_death_code. */
const char *session_death_name(unsigned code);

/* Where this event leads, or ERR_CONFLICT with a sentence why it does not. Depends on the record's
 * state, on whether it has a live sandbox (which must never become two), and on whether there is
 * anything to resume from. */
int session_record_next(const struct store_session *s, enum session_event ev,
			enum session_state *ret, struct err *err);

struct session_cause_opts {
	enum session_cause cause;
	const char *text, *actor; /* borrowed */
	bool by_admin; /* with SESSION_CAUSE_REQUESTED: not for the owner of the session */
};

/* That this caller asked for it. */
struct session_cause_opts session_cause_requested(const struct caller *caller);
/* As records and events have it. */
struct store_cause session_cause_record(const struct session_cause_opts *why, int64_t at);

/* Makes the move: state, runtime, counters, timers and cause of the record.
 * On failure the record is as it was. The layer of SEALED and ROLLBACK, and the sandbox of READY,
 * are the caller's to set. */
int session_record_move(struct store_session *s, enum session_event ev,
			const struct session_cause_opts *why, int64_t now, struct err *err);

/* Both deadlines of an active one counted anew from its preferences. */
void session_record_reset(struct store_session *s, int64_t now);
/* Extends an active one: the expiry by ms and the idle deadline to now + ms if that is later, both
 * at most to its maximum lifetime. Returns by how much the expiry moved. */
int64_t session_record_extend(struct store_session *s, int64_t now, int64_t ms);
/* Whether its sandbox can be extended no further. */
bool session_is_at_maximum(const struct store_session *s);
/* The deadlines of an active one whose preferences were those of `was`. An extension stays unless
 * the lifetime itself changed. Counts as a use. */
void session_record_retime(struct store_session *s, const struct store_session *was, int64_t now);

/* The one answer to "is it active": running, and not about to expire. */
bool session_is_active(const struct store_session *s, int64_t now);
/* Without a sandbox, and not on its way to one; nor archived. */
bool session_is_at_rest(const struct store_session *s);
/* Whether there is anything to resume from. */
bool session_has_files(const struct store_session *s);
/* The one answer to "has it a snapshot" for callers: files to resume from, or, of one that runs,
 * a snapshot that was taken of it. */
bool session_has_snapshot(const struct store_session *s);
/* When the timers must check it: at the earlier of its deadlines; 0: never. */
int64_t session_due_at(const struct store_session *s);
/* The same for one at rest, and when a hibernated one is deleted because it was kept long enough;
 * 0: never. */
int64_t session_rest_until(const struct store_session *s);
int64_t session_delete_at(const struct store_session *s);

#endif
