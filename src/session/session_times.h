/* SPDX-License-Identifier: Apache-2.0 */
/* The times of a session: their defaults, and the bounds that the service and a policy set. */
#ifndef LODGE_SESSION_SESSION_TIMES_H
#define LODGE_SESSION_SESSION_TIMES_H

#include "engine/engine.h"
#include "session/session_fields.h"

#define SESSION_TIME_MAX_MS (INT64_MAX / 4) /* added to a time it does not overflow */

struct session_times { /* as requested; NULL: not */
	const int64_t *idle_timeout_ms, *lifetime_ms, *max_lifetime_ms;
	const int64_t *delete_after_ms; /* 0: never */
};

/* Sets those of a new session that requests none. lifetime_ms: the default of its surface, or 0. */
void session_times_default(struct engine *e, const struct store_policy *policy, int64_t lifetime_ms,
			   struct store_session *s);
/* Sets what was requested. A value beyond its bound is ERR_INVALID with the bound and the name of
 * the setting or policy; with `adjusted` it becomes the bound and is named there. */
int session_times_apply(struct engine *e, const struct store_policy *policy,
			const struct session_times *t, struct session_fields *adjusted,
			struct store_session *s, struct err *err);

#endif
