/* SPDX-License-Identifier: Apache-2.0 */
/* Capacity: how many sandboxes run at once. */
#ifndef LODGE_SESSION_CAPACITY_H
#define LODGE_SESSION_CAPACITY_H

#include "engine/engine.h"

struct session;

/* One more sandbox: hibernates the session that is idle longest, queues up to wait_ms, or refuses
 * with ERR_UNAVAILABLE, sys EAGAIN; or with ERR_LIMIT, sys EUSERS, if the tenant of this thread has
 * no place in the queue. capacity_release() when it ended or could not be started. */
int capacity_acquire(struct engine *e, int64_t wait_ms, struct err *err);
void capacity_force_acquire(struct engine *e); /* for an adopted sandbox, which runs already */
void capacity_release(struct engine *e);
void capacity_release_session(struct session *n); /* if it has any */

/* How many sandboxes may run unless it is set: one for each 64 MiB of memory, 4 to 4096. */
unsigned capacity_default(void);

struct capacity_report {
	/* sandboxes, their maximum (0: none), callers in the queue */
	unsigned active, max, waiting;
	unsigned idle; /* sandboxes that could be hibernated */
	int64_t retry_after_ms;
};
void capacity_get_report(struct engine *e, struct capacity_report *ret);

#endif
