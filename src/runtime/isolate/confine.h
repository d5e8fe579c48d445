/* SPDX-License-Identifier: Apache-2.0 */
/* The steps in which a new process drops its privileges, in the order of the calls. All run in the
 * child between clone3 and exec, and return 0 or -errno. */
#ifndef LODGE_RUNTIME_ISOLATE_CONFINE_H
#define LODGE_RUNTIME_ISOLATE_CONFINE_H

#include <sys/types.h>

#include "runtime/isolate/seccomp.h"

/* Needs the host's /proc, so it runs before the child changes its root. */
int confine_oom_score(void);
int confine_rlimits(void);
int confine_userns(int userns);
int confine_seccomp(const struct seccomp_prog *filter, bool root_class);
int confine_ids(uid_t id, bool rootless);
int confine_caps(bool root_class, bool rootless);
/* Moves fds[i] to BOOT_FD_LISTEN + i; -1 closes that number. 0 to 2 become keep_null. */
int confine_fds(int *fds, size_t count, int keep_null);

#endif
