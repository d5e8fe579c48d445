/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/volume_space.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/storage/btrfs.h"
#include "runtime/storage/loop_volume.h"

#define MIB (1ull << 20)
#define FILL_STEP (256 * MIB) /* the file is locked meanwhile, so guests' writes wait */
#define HEADROOM_MAX (4096 * MIB) /* allocated ahead of use while reserved */
#define GROW_BELOW (1024 * MIB)
#define GROW_MIN (16 * MIB)
#define EXTEND_MIN (64 * MIB)
#define SYNC_BELOW (128 * MIB)
#define WASTE_MIN (64 * MIB) /* freed space is returned in pieces of at least this */
#define TRIM_MIN (1 * MIB)
#define DEVICE_MIN (256 * MIB) /* of btrfs */
#define SUPER_TOTAL (65536 + 112) /* total_bytes of the superblock, little-endian */
#define FASTEST_PER_MS (4 * MIB) /* nobody fills a disk faster than 4 GiB/s */

enum {
	RESERVE_AT = 4, /* times the reserve is left: time to act before the host is full */
	RELEASE_AT = 6,
	TRIM_AT = 8, /* it may take long on a busy disk, and nobody watches meanwhile */
	TRIM_MS = 10000,
	SYNC_MS = 1000,
	STEP_MIN_MS = 50,
	STEP_MAX_MS = 1000,
};

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int read_host(int file, struct volume_space *ret)
{
	struct statvfs fs;
	struct stat st;

	if (fstat(file, &st) < 0 || fstatvfs(file, &fs) < 0)
		return -errno;
	*ret = (struct volume_space){ .host_free = (uint64_t)fs.f_bavail * fs.f_frsize,
				      .host_total = (uint64_t)fs.f_blocks * fs.f_frsize,
				      .file_bytes = (uint64_t)st.st_size,
				      .device_bytes = (uint64_t)st.st_size,
				      .allocated_bytes = (uint64_t)st.st_blocks * 512 };
	return 0;
}

int volume_space_read(int file, int dir, struct volume_space *ret)
{
	struct volume_space v = { 0 };
	struct statvfs fs;
	int r = read_host(file, &v);

	if (r < 0 || (r = btrfs_device_bytes(dir, &v.device_bytes)) < 0)
		return r;
	if (fstatvfs(dir, &fs) < 0)
		return -errno;
	v.free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	*ret = v;
	return 0;
}

bool volume_space_is_reserved(const struct volume_space *v)
{
	return v->allocated_bytes >= v->device_bytes;
}

uint64_t volume_space_room(const struct volume_space *v, uint64_t reserve)
{
	uint64_t more = less(v->host_free, reserve);

	if (v->device_bytes == v->file_bytes)
		return volume_space_is_reserved(v) ? v->free_bytes : smaller(v->free_bytes, more);
	return v->free_bytes + smaller(more, v->file_bytes - v->device_bytes);
}

/* What the host has left once the volume is as large as it may become. Neither guests' writes nor
 * reserving change it; only the rest of the host does. */
static int64_t get_slack(const struct volume_space *v)
{
	return (int64_t)v->host_free - (int64_t)less(v->file_bytes, v->allocated_bytes);
}

/* Fails as a whole: a part would take the host's last space and protect nothing. */
static int fill(int file, const struct volume_space *v, uint64_t size, uint64_t keep)
{
	if (less(size, v->allocated_bytes) > less(v->host_free, keep))
		return -ENOSPC;
	for (uint64_t at = 0; at < size; at += FILL_STEP)
		if (fallocate(file, 0, (off_t)at, (off_t)smaller(FILL_STEP, size - at)) < 0)
			return -errno;
	return 0;
}

int volume_space_prepare(int file, uint64_t reserve)
{
	struct volume_space v = { 0 };
	int r = read_host(file, &v);

	if (r < 0)
		return r;
	if (pread(file, &v.device_bytes, sizeof(v.device_bytes), SUPER_TOTAL) !=
	    sizeof(v.device_bytes))
		return -EIO;
	return volume_space_is_reserved(&v) || v.host_free >= reserve / 8 ? 0 : -ENOSPC;
}

/* Allocates what btrfs uses and some headroom, then takes the rest away from btrfs. In this order,
 * because a busy btrfs may need long to change its size, and the disk fills meanwhile. */
static int enter_reserved(int file, int dir, const struct volume_space *v, uint64_t reserve)
{
	uint64_t headroom = smaller(less(v->host_free, reserve) / 2, HEADROOM_MAX);
	uint64_t end = v->device_bytes, used = less(v->device_bytes, v->free_bytes), size;
	int r;

	if (btrfs_last_extent(dir, &end) < 0)
		end = v->device_bytes;
	size = used + headroom > end ? used + headroom : end;
	if (size < DEVICE_MIN)
		size = DEVICE_MIN;
	size = smaller(size & ~(MIB - 1), v->device_bytes);
	r = fill(file, v, size, reserve / 8);
	return r < 0 || size == v->device_bytes ? r : btrfs_resize(dir, size);
}

/* Allocates first, so that btrfs never has a block that the host has not. */
static int grow_reserved(int file, int dir, const struct volume_space *v, uint64_t reserve)
{
	uint64_t spare = less(v->host_free, reserve) / 2;
	uint64_t step = smaller(smaller(spare, HEADROOM_MAX), v->file_bytes - v->device_bytes);
	int r;

	step &= ~(MIB - 1);
	if (v->free_bytes >= smaller(GROW_BELOW, spare) || step < GROW_MIN)
		return 0;
	r = fill(file, v, v->device_bytes + step, reserve);
	return r < 0 ? r : btrfs_resize(dir, v->device_bytes + step);
}

/* The same rule as for a new volume: half of what the host has. */
static int extend(int file, int dir, const struct volume_space *v, uint64_t reserve)
{
	uint64_t more = (less((uint64_t)get_slack(v), RELEASE_AT * reserve) / 2) & ~(MIB - 1);
	int r;

	if (v->free_bytes >= smaller(GROW_BELOW, v->file_bytes / 8) || more < EXTEND_MIN)
		return 0;
	r = loop_volume_extend(file, v->file_bytes + more);
	return r < 0 ? r : btrfs_resize(dir, v->file_bytes + more);
}

/* The space of a deleted subvolume returns with the next commit, which may be half a minute away.
 * Only while reserved, when nothing else is urgent: a commit may take long. */
static void hurry_removals(int dir, const struct volume_space *v, struct volume_watch *w)
{
	int64_t now = clock_mono_ms();

	if (v->free_bytes >= SYNC_BELOW || !volume_space_is_reserved(v) ||
	    now - w->synced_ms < SYNC_MS)
		return;
	(void)btrfs_sync(dir);
	w->synced_ms = now;
}

/* The volume returns what its guests freed. */
static void trim(int dir, const struct volume_space *v, struct volume_watch *w)
{
	uint64_t wasted = less(v->allocated_bytes, less(v->device_bytes, v->free_bytes));
	struct fstrim_range all = { .len = UINT64_MAX, .minlen = TRIM_MIN };
	int64_t now = clock_mono_ms();

	if (wasted < w->wasted)
		w->wasted = wasted;
	if (wasted < w->wasted + WASTE_MIN || (w->trimmed_ms && now - w->trimmed_ms < TRIM_MS))
		return;
	(void)ioctl(dir, FITRIM, &all);
	w->trimmed_ms = now;
	w->wasted = UINT64_MAX; /* the next look measures what is left */
}

static int next_step_ms(uint64_t bytes)
{
	uint64_t ms = bytes / FASTEST_PER_MS;

	if (ms < STEP_MIN_MS)
		return STEP_MIN_MS;
	return ms > STEP_MAX_MS ? STEP_MAX_MS : (int)ms;
}

int volume_space_step(int file, int dir, uint64_t reserve, struct volume_watch *w)
{
	struct volume_space v = { 0 };
	int64_t slack;
	int r = volume_space_read(file, dir, &v);

	if (r < 0) {
		w->error = -r;
		return STEP_MAX_MS;
	}
	slack = get_slack(&v);
	if (slack >= (int64_t)(RELEASE_AT * reserve)) {
		r = v.device_bytes < v.file_bytes ? btrfs_resize(dir, v.file_bytes)
						  : extend(file, dir, &v, reserve);
		if (slack >= (int64_t)(TRIM_AT * reserve))
			trim(dir, &v, w);
	} else if (v.device_bytes < v.file_bytes && volume_space_is_reserved(&v)) {
		r = grow_reserved(file, dir, &v, reserve);
	} else if (slack < (int64_t)(RESERVE_AT * reserve) && !volume_space_is_reserved(&v)) {
		r = enter_reserved(file, dir, &v, reserve);
	}
	w->error = -r;
	hurry_removals(dir, &v, w);
	if (v.device_bytes < v.file_bytes)
		return next_step_ms(v.free_bytes);
	return next_step_ms(slack < 0 ? 0 : (uint64_t)slack / 2);
}
