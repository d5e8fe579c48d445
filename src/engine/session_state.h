/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a session, what moves it from one to another, and what a move changes in its
 * record. Pure functions: who calls them writes the record by compare-and-set afterwards. */
#ifndef LODGE_ENGINE_SESSION_STATE_H
#define LODGE_ENGINE_SESSION_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/state_machine.h"
#include "store/record.h"

/* The numbers of these enums are in the store: new ones go to the end. */
enum session_state {
	SESSION_NONE, /* never had a sandbox, or nothing is left of it */
	SESSION_PROVISIONING,
	SESSION_ACTIVE,
	SESSION_HIBERNATING,
	SESSION_HIBERNATED,
	SESSION_RESTORING,
	SESSION_ARCHIVED, /* never evaluated nor resumed */
	SESSION_FAILED,
	SESSION_DESTROYING, /* has its tombstone; the record goes when everything else has */
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
	SESSION_START, /* create or resume was asked */
	SESSION_READY, /* the sandbox answers */
	SESSION_ERROR, /* what was under way did not work */
	SESSION_USE, /* exec, file call, get-or-create, activity, extend */
	SESSION_EVENT_HIBERNATE, /* due, or hibernate was asked */
	SESSION_EVENT_NOT_DUE, /* looked at again under the lock: no longer due */
	SESSION_SEALED, /* files sealed, processes stopped */
	SESSION_ALIVE, /* a probe found it alive */
	SESSION_GONE, /* a probe or a use found it gone */
	SESSION_ROLLBACK, /* to one of its snapshots was asked */
	SESSION_ARCHIVE, /* was asked */
	SESSION_UNARCHIVE, /* was asked */
	SESSION_DESTROY, /* was asked, or due */
	SESSION_EVENTS,
};

enum session_cause {
	SESSION_CAUSE_NONE,
	SESSION_CAUSE_REQUESTED, /* somebody asked for it */
	SESSION_CAUSE_IDLE, /* nobody used it for its idle time */
	SESSION_CAUSE_EXPIRED, /* its lifetime is over */
	SESSION_CAUSE_REPLACED, /* another of the same user took its place */
	SESSION_CAUSE_CAPACITY, /* it made room for another */
	SESSION_CAUSE_GONE, /* the sandbox does not exist any more */
	SESSION_CAUSE_STOPPED, /* the sandbox is there but its processes are not */
	SESSION_CAUSE_UNAVAILABLE, /* no answer, too often */
	SESSION_CAUSE_INTERRUPTED, /* the engine ended in the middle of it */
	SESSION_CAUSE_ERROR, /* something failed; the sentence says what */
	SESSION_CAUSES,
};

enum {
	SESSION_EXPIRY_BUFFER_MS = 10000,
	SESSION_UNFINISHED_MS = 30000, /* when the sweep looks at what should be over by then */
};

/* Every move that is allowed; one that is not here is a bug. */
extern const struct state_machine session_states;

const char *session_event_name(enum session_event ev);
const char *session_cause_name(enum session_cause cause);

/* Where this event leads, or ERR_CONFLICT with a sentence why it does not. Depends on the record's
 * state, on whether it has a live sandbox (which must never become two), and on whether there is
 * anything to resume from. */
int session_record_next(const struct store_session *s, enum session_event ev,
			enum session_state *ret, struct err *err);

struct session_cause_opts {
	enum session_cause cause;
	const char *text, *actor; /* borrowed */
};

/* Makes the move: state, runtime, counters, timers and cause of the record as lifecycle.md has it.
 * On failure the record is as it was. The layer of SEALED and ROLLBACK, and the sandbox of READY,
 * are the caller's to set. */
int session_record_move(struct store_session *s, enum session_event ev,
			const struct session_cause_opts *why, int64_t now, struct err *err);

/* Deadlines of an active one: the idle deadline to now + ms if that is later, never past its
 * lifetime; or both counted anew from its preferences, which have changed. */
void session_record_push(struct store_session *s, int64_t now, int64_t ms);
void session_record_retime(struct store_session *s, int64_t now);

/* The one answer to "is it active": running, and not about to expire. */
bool session_is_active(const struct store_session *s, int64_t now);
/* Without a sandbox, and not on its way to one; nor archived. */
bool session_is_at_rest(const struct store_session *s);
/* Whether there is anything to resume from. */
bool session_has_files(const struct store_session *s);
/* The one answer to "has it a snapshot" for callers: files to resume from, or, of one that runs,
 * a snapshot that was taken of it. */
bool session_has_snapshot(const struct store_session *s);
/* When the sweep must look: the earlier of its deadlines, 0 if it has none. */
int64_t session_due_at(const struct store_session *s);

#endif
