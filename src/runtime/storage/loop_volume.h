/* SPDX-License-Identifier: Apache-2.0 */
/* A btrfs in one sparse file of the home, mounted through a loop device in the keeper's own mount
 * namespace: it provides disk limits and O(1) snapshots on any host file system. */
#ifndef LODGE_RUNTIME_STORAGE_LOOP_VOLUME_H
#define LODGE_RUNTIME_STORAGE_LOOP_VOLUME_H

#include <stdbool.h>

#include "base/err.h"

/* True if this host can probably have a volume. Does not make one. */
bool loop_volume_is_possible(int home);

/* Makes <home>/volume.btrfs if it does not exist, and mounts it at scratch/"vol". An fd of its
 * root. The kernel removes the loop device with its last mount. */
int loop_volume_open(int home, int scratch, struct err *err);

#endif
