/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_CAPACITY_H
#define LODGE_SESSION_CAPACITY_H

#include "engine/internal.h"

/* ---- room, quotas ---------------------------------------------------------------------------- */
/* One more live sandbox: hibernates the longest idle, queues up to wait_ms, or refuses with sys
 * EAGAIN. room_give() when it ended or was not made. */
int room_take(struct engine *e, int64_t wait_ms, struct err *err);
void room_take_anyway(struct engine *e); /* adopted: it lives already */
void room_give(struct engine *e);
void leave_room(struct entry *n); /* if it has one */

#endif
