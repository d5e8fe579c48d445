/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/audit.h"

#include <stdio.h>

#include "engine/engine.h"
#include "engine/store_lock.h"

int audit_append(struct store *st, int64_t now, const char *tenant, const char *kind,
		 const char *actor, const char *text, struct err *err)
{
	struct store_event ev = { .cause.at = now };

	snprintf(ev.tenant, sizeof(ev.tenant), "%s", tenant);
	snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
	snprintf(ev.cause.code, sizeof(ev.cause.code), "asked");
	snprintf(ev.cause.actor, sizeof(ev.cause.actor), "%s", actor);
	snprintf(ev.cause.text, sizeof(ev.cause.text), "%s", text);
	return store_event_append(st, &ev, err);
}

int audit_write(struct engine *e, const char *tenant, const char *kind, const char *actor,
		const char *text, struct err *err)
{
	int r = -1;

	WITH_STORE(e, st)
	r = audit_append(st, engine_now(e), tenant, kind, actor, text, err);
	return r;
}
