/* SPDX-License-Identifier: Apache-2.0 */
/* One sparse file in the home that holds a btrfs, mounted through a loop device where only the
 * keeper and its sandboxes see it: disk limits and O(1) snapshots on any host file system. */
#ifndef LODGE_RUNTIME_STORAGE_LOOP_VOLUME_H
#define LODGE_RUNTIME_STORAGE_LOOP_VOLUME_H

#include <stdbool.h>

#include "base/err.h"

/* Makes <home>/volume.btrfs if it is not there, and mounts it at scratch/"vol". An fd of its root.
 * The device goes by itself when the last mount of it does. */
/* Whether this host could have one, as far as can be told without making it. */
bool loop_volume_is_possible(int home);

int loop_volume_open(int home, int scratch, struct err *err);

#endif
