/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/name_lock.h"

#include <stdio.h>

#include "engine/internal.h"

bool name_lock_join(struct engine *e, struct name_lock *l, const char *kind, const char *tenant,
		    const char *name, unsigned max)
{
	struct gate_request rq = { .tenant = l->tenant, .key = l->key, .max_queued = max };

	snprintf(l->tenant, sizeof(l->tenant), "%s", tenant ? tenant : "");
	snprintf(l->key, sizeof(l->key), "%s:%s", kind, name);
	return gate_join(&e->name_locks, &l->ticket, &rq);
}

void name_lock_wait(struct name_lock *l)
{
	(void)gate_wait(&l->ticket, -1);
}

void name_lock(struct engine *e, struct name_lock *l, const char *kind, const char *tenant,
	       const char *name)
{
	(void)name_lock_join(e, l, kind, tenant, name, 0);
	name_lock_wait(l);
}

void name_unlock(struct name_lock *l)
{
	gate_leave(&l->ticket);
}
