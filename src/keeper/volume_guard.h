/* SPDX-License-Identifier: Apache-2.0 */
/* Watches over the volume: a child process keeps its space in step with the host's
 * (runtime/storage/volume_space.h), also while the keeper itself waits for the disk. A volume that
 * turned read-only in spite of that is mounted again. */
#ifndef LODGE_KEEPER_VOLUME_GUARD_H
#define LODGE_KEEPER_VOLUME_GUARD_H

#include "keeper/keeper.h"

/* After adoption: opens a storage that exists. If its volume failed, this ends the sandboxes on it
 * and waits a limited time until it can be mounted. */
void volume_guard_recover(struct keeper *k);
/* Starts the child if the volume is open and has none; starts to recover a volume that failed.
 * Cheap: called between requests. */
void volume_guard_step(struct keeper *k);
/* False if the child was not the guard's. */
bool volume_guard_reaped(pid_t pid);
/* Before exit. */
void volume_guard_end(void);

/* Sets the reserve (0: the default) and reports the space. */
void volume_guard_report(struct keeper *k, uint64_t reserve, struct keeper_disk *ret);

#endif
