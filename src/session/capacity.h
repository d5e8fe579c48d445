/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_CAPACITY_H
#define LODGE_SESSION_CAPACITY_H

#include "engine/internal.h"

/* ---- room, quotas ---------------------------------------------------------------------------- */
/* One more live sandbox: hibernates the longest idle, queues up to wait_ms, or refuses with sys
 * EAGAIN. capacity_release() when it ended or was not made. */
int capacity_acquire(struct engine *e, int64_t wait_ms, struct err *err);
void capacity_force_acquire(struct engine *e); /* adopted: it lives already */
void capacity_release(struct engine *e);
void session_release_capacity(struct session *n); /* if it has one */

#endif
