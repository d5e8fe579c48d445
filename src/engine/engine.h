/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: a caller's key leads to the same machine tomorrow. This is what every surface calls.
 *
 * Every call blocks and may be made from any thread. A session is changed by one call at a time;
 * others wait for their turn. What comes out through `ret` is the caller's and untouched on
 * failure. Looking (get, list, is_valid, events) writes nothing.
 *
 *   ERR_INVALID      the sentence names the field
 *   ERR_NOT_FOUND    never existed, or another tenant's; with sys ESTALE: it was destroyed, and
 *                    the sentence tells by whom, when and why (session_tombstone() has it in parts)
 *   ERR_CONFLICT     not possible in its state, or another version
 *   ERR_LIMIT        a quota, or the disk
 *   ERR_UNAVAILABLE  full, busy or broken for now: try again */
#ifndef LODGE_ENGINE_ENGINE_H
#define LODGE_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"
#include "sandbox/keeper_client.h"
#include "sandbox/template/template.h"
#include "engine/zstd_pipe.h"
#include "engine/session_state.h"
#include "store/store.h"
#include "wire/keeper_proto.h"

struct engine;
struct sandbox;

/* 0 or NULL where a field says nothing: the default. */
struct engine_opts {
	const char *home; /* absolute; where everything is kept */
	const char *keeper_program; /* NULL: the installed lodge-keeper */
	const char *zstd_program; /* NULL: the installed lodge-zstd */
	keeper_start_fn *start_keeper; /* for a process that may not start it itself; else NULL */
	void *start_arg;
	const char *socket; /* where this engine can be reached: what a second opener is told */
	bool no_threads; /* nothing happens by itself: engine_run_timers() is the caller's (tests)
			  */
	int64_t (*clock)(void *arg); /* milliseconds since 1970; NULL: the machine's */
	void *clock_arg;
	unsigned max_active; /* live sandboxes; 0: as many as the machine takes */
	unsigned queue_max; /* callers that may wait for room (64) */
	int64_t idle_ms, idle_max_ms; /* 30 min; a day */
	int64_t lifetime_ms, lifetime_max_ms; /* of one sandbox: 5 h */
	int64_t extend_ms; /* what an explicit extend adds (20 min) */
	int64_t probe_ms; /* deadline of a probe (15 s) */
	unsigned probe_failures; /* transient ones in a row that count as unavailable (3) */
	uint64_t template_bytes; /* the most that an uploaded template unpacks to (16 GiB) */
	int64_t template_ms; /* and how long that may take (30 min) */
	int64_t tombstones_ms, execs_ms, events_ms; /* how long they are kept: 7 days each */
	unsigned pool; /* sandboxes kept ready */
	bool environments; /* look into a sandbox of each template that is used, once */
	unsigned pool_min; /* below so many, new ones are made first (half of the pool) */
};

/* One engine per home: another opener is refused with the process and socket of the first. Adopts
 * what the last engine left alive, finishes or undoes what it left half done. */
int engine_open(const struct engine_opts *opts, struct engine **ret, struct err *err);
/* The same in two halves, for who has to answer meanwhile. The first takes the home and the store:
 * what it refuses, another try would not heal. Until the engine is ready nobody may use sessions;
 * keys can be used, and health and progress be asked for. */
int engine_open_store(const struct engine_opts *opts, struct engine **ret, struct err *err);
/* The second starts a keeper and takes up what the last engine left, on a thread of its own. A
 * failure that may pass is followed by another try, later and later, or soon when somebody waits.
 * fn(arg) on that thread after each try: NULL, it is ready; else why not, and in how many
 * milliseconds the next begins; 0: it is the last. */
typedef void engine_ready_fn(void *arg, const struct err *err, int64_t again_ms);
int engine_start(struct engine *e, engine_ready_fn *fn, void *arg, struct err *err);
bool engine_is_ready(struct engine *e);
/* Until it is ready. With sys EINPROGRESS and a sentence that tells the stage: ERR_TIMEOUT, not
 * yet; ERR_UNAVAILABLE: the try that was under way failed, or too many wait already. */
int engine_wait_ready(struct engine *e, int64_t wait_ms, struct err *err);
/* The sandboxes live on. Nobody may be in a call. NULL is allowed. */
void engine_close(struct engine *e);
DEFINE_AUTO(struct engine *, engine_close);

/* One round of everything that happens by itself: deadlines, what was lost, unfinished removals,
 * layers nobody needs. Safe at any time, from any thread. Returns how many sessions it changed. */
int engine_run_timers(struct engine *e);
/* Rows written since the engine was opened: looking never raises it. */
int64_t engine_changes(struct engine *e);
/* The time that deadlines are compared with: milliseconds since 1970; not moved by a jump of the
 * clock. */
int64_t engine_now(struct engine *e);
int64_t engine_extend_ms(const struct engine *e); /* the usual step of session_extend() */

/* ---- who asks, and for which session -------------------------------------------------------- */

struct caller {
	const char *tenant; /* whose sessions these are */
	const char *actor; /* for events and causes: "api", "cli", a user */
};

struct session_ref { /* by id; or, with id NULL, by one of its keys */
	const char *id;
	const char *kind, *key; /* kind NULL: "key" */
};

/* ---- entering -------------------------------------------------------------------------------- */

enum session_outcome {
	SESSION_CREATED = 1,
	SESSION_REUSED, /* it ran */
	SESSION_RESUMED, /* it had been hibernated, or its sandbox was gone; the files are there */
	SESSION_REPLACED, /* the files of an earlier one are not there: state_lost */
};

enum session_source {
	SESSION_SOURCE_NONE,
	SESSION_SOURCE_POOL,
	SESSION_SOURCE_COLD,
	SESSION_SOURCE_RESUME,
	SESSION_SOURCE_FORK
};

enum session_exceed_action { SESSION_EXCEED_REFUSE, SESSION_EXCEED_REPLACE };

struct session_opts {
	const struct store_binding *keys; /* the first that leads somewhere decides; all of them
					     lead to it afterwards. None: always a new session */
	size_t nkeys;
	const char *user; /* its owner */
	const char *template; /* NULL: "host"; only for a new one */
	const struct template
		*overrides; /* over the template; only for a new session; may be NULL */
	const char *snapshot; /* a new one starts from this snapshot's files */
	const char *policy; /* NULL: the template's, else the tenant's "default", if there is one;
			       only for a new one */
	bool no_policy; /* none of these either: one that is nobody's, only to work in */
	const char *project, *fragment; /* names in the record */
	int64_t idle_timeout_ms, max_lifetime_ms; /* 0: the default; clamped; only for a new one:
						     attaching never changes a life */
	enum session_end on_idle, on_expire; /* only for a new one */
	const char *metadata; /* a JSON object; NULL: none; only for a new one */
	bool must_be_new; /* ERR_CONFLICT if a key leads somewhere */
	const char *pin; /* this session or sandbox id, or ERR_CONFLICT */
	const char *idempotency_key; /* the same key leads to the same session */
	unsigned max_active_per_user; /* 0: any number */
	enum session_exceed_action on_exceed;
	int64_t wait_ms; /* for room, in the queue; 0: not at all */
	bool no_start; /* create a new session without a sandbox; leave an existing one as it is */
};

struct session_enter_result {
	struct store_session session;
	enum session_outcome outcome;
	enum session_source source;
	bool state_lost;
	struct store_cause cause; /* why it had to be resumed or replaced */
	uint64_t ready_us;
};
void session_enter_result_fini(struct session_enter_result *r);

int session_enter(struct engine *e, const struct caller *who, const struct session_opts *want,
		  struct session_enter_result *ret, struct err *err);

/* When an enter was refused because all is full (ERR_UNAVAILABLE, sys EAGAIN). */
struct capacity_report {
	unsigned active, max, waiting; /* sandboxes now, at most, callers in the queue */
	unsigned idle; /* that could be hibernated */
	int64_t retry_after_ms;
};
void capacity_get_report(struct engine *e, struct capacity_report *ret);

/* ---- looking --------------------------------------------------------------------------------- */

int session_get(struct engine *e, const struct caller *who, const struct session_ref *ref,
		struct store_session *ret, struct err *err);
/* Whether there is such a session and another tenant has it: for surfaces that tell such callers
 * that they may not, where session_get() says that there is none. */
bool session_is_foreign(struct engine *e, const struct caller *who, const char *id);
int session_list(struct engine *e, const struct store_session_filter *f, struct store_page page,
		 struct store_session_list *ret, struct err *err);
/* What its sandbox may use: what the session says, else its template, else the defaults; no more
 * than its policy lets it. Of what cannot be read: the defaults. */
void session_limits(struct engine *e, const struct store_session *s, struct limits *ret);
/* True only if its sandbox is live now. */
bool session_is_valid(struct engine *e, const struct caller *who, const struct session_ref *ref);
int session_tombstone(struct engine *e, const struct caller *who, const struct session_ref *ref,
		      struct store_tombstone *ret, struct err *err);
unsigned capacity_active(struct engine *e);
/* Whether its newest sealed files would survive a power loss. Live ones: those below. */
int session_is_durable(struct engine *e, const struct caller *who, const struct session_ref *ref,
		       bool *ret, struct err *err);
int session_stats(struct engine *e, const struct caller *who, const struct session_ref *ref,
		  struct keeper_stats *ret, struct err *err);
int engine_events(struct engine *e, int64_t since, const char *tenant, const char *session,
		  unsigned limit, struct store_event_list *ret, struct err *err);

enum session_probe_status {
	SESSION_PROBE_CONNECTED = 1, /* verified */
	SESSION_PROBE_UNKNOWN, /* no answer in time, for now: everything is kept; ask again */
	SESSION_EXPIRED, /* gone; the record says so now */
	SESSION_PROBE_NO_SANDBOX,
};
struct session_probe_result {
	enum session_probe_status status;
	struct store_cause cause;
	int64_t expires_at, retry_after_ms;
};
/* Never extends a life. deadline_ms 0: the default. */
int session_probe(struct engine *e, const struct caller *who, const struct session_ref *ref,
		  int64_t deadline_ms, struct session_probe_result *ret, struct err *err);

/* ---- changing -------------------------------------------------------------------------------- */

/* `if_version` anywhere: 0, or the version the record must have now, else ERR_CONFLICT. `ret`,
 * where it is not NULL, is the record afterwards. */

/* Later deadlines, never past its lifetime: by ms, 0: the default step. */
int session_extend(struct engine *e, const struct caller *who, const struct session_ref *ref,
		   int64_t ms, int64_t if_version, struct store_session *ret, struct err *err);
/* Somebody works in it. */
int session_activity(struct engine *e, const struct caller *who, const struct session_ref *ref,
		     struct store_session *ret, struct err *err);

struct session_patch { /* what is not set stays */
	const int64_t *idle_timeout_ms, *max_lifetime_ms;
	const enum session_end *on_idle, *on_expire;
	const struct template *limits; /* only its limits, in force at once */
	const char *metadata;
	int64_t if_version;
};
int session_change(struct engine *e, const struct caller *who, const struct session_ref *ref,
		   const struct session_patch *patch, struct store_session *ret, struct err *err);

/* Processes frozen, memory kept. Any use thaws. */
int session_pause(struct engine *e, const struct caller *who, const struct session_ref *ref,
		  int64_t if_version, struct store_session *ret, struct err *err);
int session_unpause(struct engine *e, const struct caller *who, const struct session_ref *ref,
		    int64_t if_version, struct store_session *ret, struct err *err);

/* Files kept, processes ended; of what sleeps already: success. */
int session_hibernate(struct engine *e, const struct caller *who, const struct session_ref *ref,
		      int64_t if_version, struct store_session *ret, struct err *err);
/* Of what runs already: success, SESSION_REUSED. Pushes the deadlines as entering does. */
int session_resume(struct engine *e, const struct caller *who, const struct session_ref *ref,
		   int64_t if_version, struct session_enter_result *ret, struct err *err);

/* Archived sessions are never evaluated nor resumed. One that runs is hibernated first. */
int session_archive(struct engine *e, const struct caller *who, const struct session_ref *ref,
		    int64_t if_version, struct store_session *ret, struct err *err);
int session_unarchive(struct engine *e, const struct caller *who, const struct session_ref *ref,
		      int64_t if_version, struct store_session *ret, struct err *err);

/* From every state, asking nothing of the guest. One that is gone already is success; *ret (may be
 * NULL) is the tombstone. Only what never existed is ERR_NOT_FOUND. */
int session_destroy(struct engine *e, const struct caller *who, const struct session_ref *ref,
		    const struct session_cause_opts *why, struct store_tombstone *ret,
		    struct err *err);

/* Every session of a user, or of the tenant with user NULL. One failure does not stop the rest. */
struct session_cleanup {
	char (*destroyed)[STORE_ID]; /* owned */
	char (*failed)[STORE_ID]; /* owned */
	size_t ndestroyed, nfailed;
};
int session_cleanup(struct engine *e, const struct caller *who, const char *user,
		    struct session_cleanup *ret, struct err *err);
void session_cleanup_fini(struct session_cleanup *c);

/* ---- snapshots ------------------------------------------------------------------------------- */

int snapshot_get(struct engine *e, const struct caller *who, const char *id,
		 struct store_snapshot *ret, struct err *err);
int snapshot_search(struct engine *e, const struct store_snapshot_filter *f, struct store_page page,
		    struct store_snapshot_list *ret, struct err *err);

/* zstd_pipe_run() the engine's packer. */
int engine_zstd_pipe(struct engine *e, bool back, int fd, zstd_pipe_fn *fn, void *arg,
		     struct err *err);

/* ---- quotas -----------------------------------------------------------------------------------
 */

int quota_set(struct engine *e, const struct store_quota *q, struct err *err);
int quota_get(struct engine *e, const char *tenant, const char *user, struct store_quota *ret,
	      struct store_usage *ret_usage, struct err *err);

#endif
