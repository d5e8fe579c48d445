/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/audit.h"

#include <stdio.h>

#include "engine/engine.h"
#include "engine/session_state.h"
#include "engine/store_lock.h"

int audit_append(struct store *st, int64_t now, const char *tenant, const char *kind,
		 const char *actor, const char *text, struct err *err)
{
	struct session_cause_opts why = { SESSION_CAUSE_REQUESTED, text, actor };
	struct store_event ev = { .cause = session_cause_record(&why, now) };

	snprintf(ev.tenant, sizeof(ev.tenant), "%s", tenant);
	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	return store_event_append(st, &ev, err);
}

int audit_write(struct engine *e, const char *tenant, const char *kind, const char *actor,
		const char *text, struct err *err)
{
	return STORE_CALL(e, audit_append, engine_now(e), tenant, kind, actor, text, err);
}
