/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a sandbox whose engine died and did not come back before the deadlines of the session, so
 * that nothing runs without an owner for ever. */
#ifndef LODGE_INIT_EXEC_ORPHAN_H
#define LODGE_INIT_EXEC_ORPHAN_H

#include "wire/agent_proto.h"

void orphan_set_deadlines(const struct agent_deadlines *d);
uint64_t orphan_next_timer(void); /* clock_mono_us(); UINT64_MAX: none */
void orphan_run_timers(uint64_t now_us);

#endif
