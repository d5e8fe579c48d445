/* SPDX-License-Identifier: Apache-2.0 */
/* Locks by name, fair: callers get a name in the order in which they asked for it. */
#ifndef LODGE_ENGINE_NAME_LOCK_H
#define LODGE_ENGINE_NAME_LOCK_H

#include "base/auto.h"
#include "base/gate.h"
#include "store/record.h"

struct engine;

struct name_lock {
	struct gate_ticket ticket; /* its gate is NULL while the lock is not held */
	char tenant[STORE_NAME], key[STORE_KEY];
};

/* One caller at a time holds the lock of this kind, tenant (NULL: none) and name. */
void name_lock(struct engine *e, struct name_lock *l, const char *kind, const char *tenant,
	       const char *name);
/* Only takes a place in the queue: false if `max` callers (0: any number) hold the lock or wait for
 * it already. Never blocks; name_lock_wait() waits for the lock. */
bool name_lock_join(struct engine *e, struct name_lock *l, const char *kind, const char *tenant,
		    const char *name, unsigned max);
void name_lock_wait(struct name_lock *l);
void name_unlock(struct name_lock *l); /* one that is not held is allowed */
DEFINE_AUTO(struct name_lock *, name_unlock);

#endif
