/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock for the process that is about to become a command: what it and all it starts may
 * execute. Nothing else is taken away. */
#ifndef LODGE_INIT_CORE_LANDLOCK_H
#define LODGE_INIT_CORE_LANDLOCK_H

#include "init/core/init_state.h"

/* `list` is as AGENT_LANDLOCK has it; `shell`: also the shell that lodge starts. As the command's
 * user, for good. 0, also where the kernel has no Landlock unless `must`; else -errno: ENOSYS then.
 */
int landlock_restrict(const char *list, bool must, bool shell, const struct cred *cred);

#endif
