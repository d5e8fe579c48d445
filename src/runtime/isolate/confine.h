/* SPDX-License-Identifier: Apache-2.0 */
/* The steps by which a new process gives up what it does not need, in the order they are called.
 * All run in the child between clone3 and exec; leaf calls: 0 or -errno. */
#ifndef LODGE_RUNTIME_ISOLATE_CONFINE_H
#define LODGE_RUNTIME_ISOLATE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "runtime/isolate/seccomp.h"

int confine_rlimits(void);
int confine_userns(int userns);
int confine_seccomp(const struct seccomp_prog *filter, bool root_class);
int confine_ids(uid_t id, bool rootless);
int confine_caps(bool root_class, bool rootless);
/* Puts fds[i] at BOOT_FD_LISTEN + i (-1: closed there) and closes everything above. */
int confine_fds(int *fds, size_t count, int keep_null);

#endif
