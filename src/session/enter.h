/* SPDX-License-Identifier: Apache-2.0 */
/* Get or create. */
#ifndef LODGE_SESSION_ENTER_H
#define LODGE_SESSION_ENTER_H

#include "engine/engine.h"
#include "engine/session_state.h"
#include "sandbox/template/template.h"
#include "session/session_fields.h"

enum { SESSION_KEEP = -1 };

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
	/* 0: the default. A value beyond its bound is refused, or with `adjust` reduced. */
	int64_t idle_timeout_ms, lifetime_ms, max_lifetime_ms;
	int64_t delete_after_ms; /* 0: the default; SESSION_KEEP: never */
	int64_t default_lifetime_ms; /* of the surface, if none is given; 0: the engine's */
	bool adjust;
	enum session_end on_idle, on_expire;
	bool has_on_idle, has_on_expire; /* requested, not only the default */
	const char *metadata; /* a JSON object; NULL: none */
};

struct session_enter_result {
	struct store_session session;
	enum session_outcome outcome;
	enum session_source source;
	bool state_lost;
	struct store_cause cause; /* why it had to be resumed or replaced */
	struct session_fields ignored; /* requested, but the session exists and has another value */
	struct session_fields adjusted; /* reduced to their bounds */
	uint64_t ready_us;
};
void session_enter_result_fini(struct session_enter_result *r);
/* Whether the last session of one of these keys lost its files without a request of its user: then
 * *ret is the cause, and whoever creates the next one reports the loss. user: NULL for any. */
bool session_key_is_lost(struct engine *e, const struct caller *caller,
			 const struct store_binding *keys, size_t nkeys, const char *user,
			 struct store_cause *ret);

int session_enter(struct engine *e, const struct caller *caller, const struct session_opts *opts,
		  struct session_enter_result *ret, struct err *err);
/* If it runs already: success, SESSION_REUSED. Postpones the deadlines like session_enter(). */
int session_resume(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		   int64_t if_version, struct session_enter_result *ret, struct err *err);

#endif
