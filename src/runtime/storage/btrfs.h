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
/* `dir` is outside the subvolume: inside a full one the kernel refuses even a higher limit.
 * UINT64_MAX: none. */
int btrfs_limit(int dir, int subvol, uint64_t bytes);

struct btrfs_usage {
	uint64_t bytes;
	uint64_t left; /* within its limit: at least; UINT64_MAX: it has no limit */
};
int btrfs_get_usage(int subvol, struct btrfs_usage *ret);

/* Writes everything, and starts to remove deleted subvolumes. */
int btrfs_sync(int dir);

/* Of a file system with one device: its size, the end of its last allocated chunk, a new size. A
 * smaller size first moves what is beyond it, which takes long. */
int btrfs_device_bytes(int dir, uint64_t *ret);
int btrfs_last_extent(int dir, uint64_t *ret);
int btrfs_resize(int dir, uint64_t bytes);

#endif
