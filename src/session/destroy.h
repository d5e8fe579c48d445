/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_DESTROY_H
#define LODGE_SESSION_DESTROY_H

#include "engine/engine.h"
#include "engine/session_state.h"

struct session;

/* Works in every state, without the guest. Success if it is destroyed already; ERR_NOT_FOUND only
 * if it never existed. *ret (may be NULL) is the tombstone. */
int session_destroy(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		    const struct session_cause_opts *why, struct store_tombstone *ret,
		    struct err *err);

/* The same only if the record has this version; ERR_CONFLICT else. 0: any. */
int session_destroy_version(struct engine *e, const struct caller *caller,
			    const struct session_ref *ref, int64_t if_version,
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

/* Writes the tombstone, ends the sandbox and removes the record; the session is empty
 * afterwards. */
int destroy_session(struct session *n, const struct session_cause_opts *why, struct err *err);
/* The second half, from DESTROYING. */
int destroy_finish(struct session *n, struct err *err);

#endif
