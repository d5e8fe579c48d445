/* SPDX-License-Identifier: Apache-2.0 */
/* The ioctls of btrfs: subvolumes, snapshots and limits. All return 0 or -errno. */
#ifndef LODGE_RUNTIME_STORAGE_BTRFS_H
#define LODGE_RUNTIME_STORAGE_BTRFS_H

#include <stdbool.h>
#include <stdint.h>

bool btrfs_is(int dir);
int btrfs_quota_enable(int dir);
int btrfs_subvol_create(int dir, const char *name);
int btrfs_subvol_snapshot(int dir, const char *name, int from);
/* Also removes its quota group. */
int btrfs_subvol_delete(int dir, const char *name);
int btrfs_limit(int subvol, uint64_t bytes);
int btrfs_usage(int subvol, uint64_t *ret);

#endif
