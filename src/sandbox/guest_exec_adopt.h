/* SPDX-License-Identifier: Apache-2.0 */
/* Continues commands that another engine or connection started. */
#ifndef LODGE_SANDBOX_GUEST_EXEC_ADOPT_H
#define LODGE_SANDBOX_GUEST_EXEC_ADOPT_H

#include "sandbox/guest_exec.h"

/* Adopts a command by its id that another engine or connection started: running, or ended and not
 * forgotten. Afterwards it is GUEST_EXEC_RUNNING or GUEST_EXEC_EXITED. Callbacks report only what
 * happens later: check guest_exec_state() and guest_exec_end(). All output in its logs can be read;
 * with `hold` (see guest_exec_spec) none of it is dropped before guest_exec_consumed(). Input works
 * if it was open; it is busy while input of the previous engine is queued. If lodge-init dropped
 * the logs of an ended command (see agent_logs), it has no output and AGENT_HIT_OUTPUT.
 * ERR_NOT_FOUND: unknown or forgotten; ERR_CONFLICT: this connection already has a handle of it;
 * ERR_TIMEOUT after 15 s: nothing changed, retry. */
int guest_exec_adopt(struct sandbox *sb, uint64_t id, bool hold, const struct guest_exec_ops *ops,
		     void *arg, struct guest_exec **ret, struct err *err);

#endif
