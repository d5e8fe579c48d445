/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as the surfaces use them: a caller's key leads to the same sandbox and files every time.
 */
#ifndef LODGE_SESSION_SESSION_API_H
#define LODGE_SESSION_SESSION_API_H

#include "engine/engine.h"
#include "engine/session_state.h"
#include "sandbox/template/template.h"

/* ---- get or create --------------------------------------------------------------------------- */

enum session_exceed_action { SESSION_EXCEED_REFUSE, SESSION_EXCEED_REPLACE };

struct session_opts {
	const struct store_binding *keys; /* the first that is bound decides; all of them are bound
					     to the session afterwards. None: always a new one */
	size_t nkeys;
	const char *user; /* its owner */
	bool must_be_new; /* ERR_CONFLICT if a key is bound */
	const char *pin; /* must be this session or sandbox id, else ERR_CONFLICT */
	const char *idempotency_key; /* the same key leads to the same session */
	unsigned max_active_per_user; /* 0: any number */
	enum session_exceed_action on_exceed;
	int64_t wait_ms; /* for capacity, in the queue; 0: do not wait */
	bool no_start; /* create a new session without a sandbox; leave an existing one as it is */

	/* The rest is for a new session; an existing one keeps its own. */
	const char *template; /* NULL: "host" */
	const struct template *overrides; /* over the template; may be NULL */
	const char *snapshot; /* start from the files of this snapshot */
	const char *policy; /* NULL: the template's, else the tenant's "default", if it exists */
	bool no_policy; /* neither of those: an internal session */
	const char *project, *fragment; /* names in the record */
	int64_t idle_timeout_ms, max_lifetime_ms; /* 0: the default; clamped */
	enum session_end on_idle, on_expire;
	const char *metadata; /* a JSON object; NULL: none */
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

int session_enter(struct engine *e, const struct caller *caller, const struct session_opts *opts,
		  struct session_enter_result *ret, struct err *err);

/* ---- reads ----------------------------------------------------------------------------------- */

int session_get(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		struct store_session *ret, struct err *err);
/* Whether the session exists and belongs to another tenant: for surfaces that deny access where
 * session_get() returns ERR_NOT_FOUND. */
bool session_is_foreign(struct engine *e, const struct caller *caller, const char *id);
int session_list(struct engine *e, const struct store_session_filter *f, struct store_page page,
		 struct store_session_list *ret, struct err *err);
/* Limits of its sandbox: of the session, else its template, else the defaults; within its policy.
 * The defaults if the template cannot be read. */
void session_limits(struct engine *e, const struct store_session *s, struct limits *ret);
/* True only while its sandbox runs. */
bool session_is_valid(struct engine *e, const struct caller *caller, const struct session_ref *ref);
int session_tombstone(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		      struct store_tombstone *ret, struct err *err);
/* Whether its newest sealed files would survive a power loss. Of a running one: those below it. */
int session_is_durable(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		       bool *ret, struct err *err);
int session_stats(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		  struct keeper_stats *ret, struct err *err);

enum session_probe_status {
	SESSION_PROBE_CONNECTED = 1, /* verified */
	SESSION_PROBE_UNKNOWN, /* no answer in time: nothing changed; try again */
	SESSION_EXPIRED, /* gone; the record was updated */
	SESSION_PROBE_NO_SANDBOX,
};
struct session_probe_result {
	enum session_probe_status status;
	struct store_cause cause;
	int64_t expires_at, retry_after_ms;
};
/* Never postpones a deadline. deadline_ms 0: the default. */
int session_probe(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		  int64_t deadline_ms, struct session_probe_result *ret, struct err *err);

/* ---- changes --------------------------------------------------------------------------------- */

/* `if_version` in all of them: 0, or the version the record must have, else ERR_CONFLICT. `ret`,
 * where it is not NULL, is the record afterwards. */

/* Postpones its deadlines by ms (0: the default step), never past its lifetime. */
int session_extend(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		   int64_t ms, int64_t if_version, struct store_session *ret, struct err *err);
/* Counts as a use of the session. */
int session_activity(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		     struct store_session *ret, struct err *err);

struct session_patch { /* NULL: unchanged */
	const int64_t *idle_timeout_ms, *max_lifetime_ms;
	const enum session_end *on_idle, *on_expire;
	const struct template *limits; /* only its limits, applied at once */
	const char *metadata;
	int64_t if_version;
};
int session_change(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		   const struct session_patch *patch, struct store_session *ret, struct err *err);

/* Freezes its processes; memory is kept. Any use thaws them. */
int session_pause(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		  int64_t if_version, struct store_session *ret, struct err *err);
int session_unpause(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		    int64_t if_version, struct store_session *ret, struct err *err);

/* Ends its processes and keeps its files. Success if it is hibernated already. */
int session_hibernate(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		      int64_t if_version, struct store_session *ret, struct err *err);
/* If it runs already: success, SESSION_REUSED. Postpones the deadlines like session_enter(). */
int session_resume(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		   int64_t if_version, struct session_enter_result *ret, struct err *err);

/* An archived session is never evaluated nor resumed. A running one is hibernated first. */
int session_archive(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		    int64_t if_version, struct store_session *ret, struct err *err);
int session_unarchive(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		      int64_t if_version, struct store_session *ret, struct err *err);

/* Works in every state, without the guest. Success if it is destroyed already; ERR_NOT_FOUND only
 * if it never existed. *ret (may be NULL) is the tombstone. */
int session_destroy(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		    const struct session_cause_opts *why, struct store_tombstone *ret,
		    struct err *err);

/* Destroys all sessions of a user, or of the tenant with user NULL. Goes on after a failure. */
struct session_cleanup {
	char (*destroyed)[STORE_ID]; /* owned */
	char (*failed)[STORE_ID]; /* owned */
	size_t ndestroyed, nfailed;
};
int session_cleanup(struct engine *e, const struct caller *caller, const char *user,
		    struct session_cleanup *ret, struct err *err);
void session_cleanup_fini(struct session_cleanup *c);

#endif
