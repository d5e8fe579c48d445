/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock for a process that is about to become a command: which programs it and its children may
 * execute. It restricts nothing else. */
#ifndef LODGE_INIT_CORE_LANDLOCK_H
#define LODGE_INIT_CORE_LANDLOCK_H

#include "init/core/init_state.h"

/* `list` has the form of AGENT_LANDLOCK; `shell` also allows the shell that lodge starts. Runs as
 * the command's user and cannot be undone. 0 or -errno. Without Landlock in the kernel: -ENOSYS if
 * `required`, else 0. */
int landlock_restrict(const char *list, bool required, bool shell, const struct cred *cred);

#endif
