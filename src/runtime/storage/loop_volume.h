/* SPDX-License-Identifier: Apache-2.0 */
/* A btrfs in one sparse file of the home, mounted through a loop device in the keeper's own mount
 * namespace: it provides disk limits and O(1) snapshots on any host file system. */
#ifndef LODGE_RUNTIME_STORAGE_LOOP_VOLUME_H
#define LODGE_RUNTIME_STORAGE_LOOP_VOLUME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* True if this host can probably have a volume. Does not make one. */
bool loop_volume_is_possible(int home);

/* Makes <home>/volume.btrfs if it does not exist, and mounts it at scratch/"vol". An fd of its
 * root; `ret_file` is one of the file. The kernel removes the loop device with its last mount.
 *
 * ERR_UNAVAILABLE with EROFS: a write below it failed earlier, and sandboxes still use the mount
 * that turned read-only. Once they have ended, it can be mounted again. */
int loop_volume_open(int home, int scratch, int *ret_file, struct err *err);
/* Gives the file and its loop device a larger size. 0 or -errno. */
int loop_volume_extend(int file, uint64_t bytes);
/* The mount goes when nothing uses it any more. */
void loop_volume_close(int scratch);

#endif
