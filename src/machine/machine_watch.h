/* SPDX-License-Identifier: Apache-2.0 */
/* Notices a sandbox whose lodge-init does not respond, because it was stopped from outside or
 * hangs. Callers that wait for it get an error within the deadline of a probe; when several
 * deadlines have passed, the sandbox counts as dead and is replaced like one that exited. */
#ifndef LODGE_MACHINE_MACHINE_WATCH_H
#define LODGE_MACHINE_MACHINE_WATCH_H

#include "machine/machine.h"

/* One round, about once a second. `paused`: it cannot respond, so the time does not count. */
void machine_watch(struct machine *v, bool paused);
/* Tells lodge-init when to end the sandbox if no engine is there: engine_now() of its deadlines, 0:
 * none. Sends nothing if they are as before. */
void machine_set_deadlines(struct machine *v, int64_t idle_at, int64_t expires_at);
/* Its processes are frozen for a copy of its files: that time does not count either. */
void machine_set_frozen(struct machine *v, bool frozen);
/* ERR_UNAVAILABLE with the time that it has been silent. With machine.mutex. */
int machine_fail_stalled(const struct machine *v, struct err *err);
/* Whether it was given up because it did not respond; ret: for how long, in seconds. */
bool machine_gave_no_answer(struct machine *v, int64_t *ret_s);

/* Side connections in use: a stall ends them, so that their callers do not wait. With
 * machine.mutex. */
void machine_add_side_conn(struct machine *v, struct sandbox *side);
void machine_remove_side_conn(struct machine *v, const struct sandbox *side);

#endif
