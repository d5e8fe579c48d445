/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_CHANGE_H
#define LODGE_SESSION_CHANGE_H

#include "engine/engine.h"
#include "engine/session_state.h"
#include "sandbox/template/template.h"

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

#endif
