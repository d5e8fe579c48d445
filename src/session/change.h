/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_CHANGE_H
#define LODGE_SESSION_CHANGE_H

#include "engine/engine.h"
#include "engine/session_state.h"
#include "sandbox/template/template.h"
#include "session/session_fields.h"

/* What an extend did: by how much the expiry moved, and whether it can move no further. */
struct session_extension {
	int64_t by_ms;
	bool at_maximum;
	char reason[128]; /* why it moved by less than asked; "": it did not */
};
/* Postpones the expiry by ms (0: the default step), at most to the maximum lifetime, and the idle
 * deadline to ms from now. `how` may be NULL. */
int session_extend(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		   int64_t ms, int64_t if_version, struct session_extension *how,
		   struct store_session *ret, struct err *err);
/* Counts as a use of the session. */
int session_activity(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		     struct store_session *ret, struct err *err);

struct session;
/* If limits_unsure: sets those of the record. With the session's lock. */
int session_restore_limits(struct session *n, struct err *err);

struct session_patch { /* NULL: unchanged */
	const int64_t *idle_timeout_ms, *lifetime_ms, *max_lifetime_ms;
	const int64_t *delete_after_ms; /* 0: never */
	const enum session_end *on_idle, *on_expire;
	const struct template *limits; /* only its limits, applied at once */
	bool lower_only; /* ERR_DENIED if a limit exceeds the present one */
	const char *metadata;
	int64_t if_version;
};
/* A lower max_lifetime_ms also lowers lifetime_ms, and names it in `adjusted` (may be NULL). */
int session_change(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		   const struct session_patch *patch, struct session_fields *adjusted,
		   struct store_session *ret, struct err *err);

#endif
