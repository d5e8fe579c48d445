/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_HIBERNATE_H
#define LODGE_SESSION_HIBERNATE_H

#include "engine/engine.h"
#include "engine/session_state.h"

struct session;

/* Ends its processes and keeps its files. Success if it is hibernated already. */
int session_hibernate(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		      int64_t if_version, struct store_session *ret, struct err *err);
/* The same for another reason than the caller's request. */
int session_hibernate_for(struct engine *e, const struct caller *caller,
			  const struct session_ref *ref, int64_t if_version,
			  const struct session_cause_opts *why, struct store_session *ret,
			  struct err *err);
/* An archived session is never evaluated nor resumed. A running one is hibernated first. */
int session_archive(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		    int64_t if_version, struct store_session *ret, struct err *err);
int session_unarchive(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		      int64_t if_version, struct store_session *ret, struct err *err);

/* ACTIVE to HIBERNATED, also if the sandbox is gone. */
int hibernate_session(struct session *n, const struct session_cause_opts *why, struct err *err);
/* The second half of it, from HIBERNATING: stop, seal, record. */
int hibernate_finish(struct session *n, const struct session_cause_opts *why, struct err *err);

#endif
