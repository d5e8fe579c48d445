/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a volume from meeting a full disk below it. btrfs turns read-only for good when a write to
 * its sparse file fails, so the space that btrfs may still use is compared with what the host has:
 *
 *   sparse    the host has enough for the whole volume and a margin. Freed space is returned, and a
 *             volume that is almost full gets larger.
 *   reserved  it has not. The volume is shrunk to what it uses and some headroom, all of that is
 *             allocated, and it grows only by space that was allocated before. A full volume is an
 *             ordinary ENOSPC for who writes, and nothing fails below it. */
#ifndef LODGE_RUNTIME_STORAGE_VOLUME_SPACE_H
#define LODGE_RUNTIME_STORAGE_VOLUME_SPACE_H

#include <stdbool.h>
#include <stdint.h>

struct volume_space {
	uint64_t host_free, host_total;
	uint64_t file_bytes; /* the most that the volume may have */
	uint64_t device_bytes; /* what btrfs uses of it: less while reserved */
	uint64_t allocated_bytes; /* blocks of the file on the host */
	uint64_t free_bytes; /* inside the volume */
};

struct volume_watch {
	uint64_t wasted; /* allocated and unused after the last trim */
	int64_t trimmed_ms, synced_ms; /* clock_mono_ms() */
	int error; /* errno of the last step that could not reserve; 0: none */
};

/* `file`: the volume's file. `dir`: its root. 0 or -errno. */
int volume_space_read(int file, int dir, struct volume_space *ret);
/* True if every block that btrfs may write is allocated. */
bool volume_space_is_reserved(const struct volume_space *v);
/* What entries can still write before the volume is full and cannot grow. */
uint64_t volume_space_room(const struct volume_space *v, uint64_t reserve);
/* Before the first mount: -ENOSPC if the volume is not reserved and the host has no space for what
 * a mount writes. */
int volume_space_prepare(int file, uint64_t reserve);
/* One look at the space, and what follows from it. Returns the milliseconds until the next. */
int volume_space_step(int file, int dir, uint64_t reserve, struct volume_watch *w);

#endif
