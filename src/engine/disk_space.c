/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/disk_space.h"

#include <errno.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include "base/units.h"
#include "engine/internal.h"

/* With less for the files of sandboxes, the disk counts as full. */
#define ROOM_MIN (32ull << 20)

const char *disk_state_name(enum disk_state s)
{
	static const char *const names[] = {
		[DISK_OK] = "ok",
		[DISK_FULL] = "full",
		[DISK_FAILED] = "failed",
	};

	return names[s];
}

/* It takes more to leave the state than to enter it, or it would change with every request. */
static enum disk_state judge(const struct keeper_disk *d, enum disk_state was)
{
	uint64_t more = was == DISK_OK ? 0 : d->reserve_bytes / 4;
	uint64_t room = d->reserve_bytes / 4 < ROOM_MIN ? d->reserve_bytes / 4 : ROOM_MIN;

	if (d->failed)
		return DISK_FAILED;
	if (d->free_bytes < d->reserve_bytes + more)
		return DISK_FULL;
	return d->room_bytes < (was == DISK_OK ? room : 2 * room) ? DISK_FULL : DISK_OK;
}

/* Without a keeper, the host's part is still known. */
static void read_host(struct engine *e, struct keeper_disk *d)
{
	struct statvfs fs;

	if (statvfs(e->home, &fs) < 0)
		return;
	d->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	d->total_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
	if (!d->reserve_bytes)
		d->reserve_bytes = e->opts.disk_reserve ? e->opts.disk_reserve
							: limits_disk_reserve(d->total_bytes);
	if (!d->room_bytes && !d->volume_bytes)
		d->room_bytes = d->free_bytes;
}

/* NULL: without the keeper. */
static void set_disk(struct engine *e, const struct keeper_disk *d)
{
	MUTEX_GUARD(&e->mutex);
	if (d)
		e->disk.last = *d;
	else
		read_host(e, &e->disk.last);
	e->disk.state = judge(&e->disk.last, e->disk.state);
}

void disk_space_poll(struct engine *e)
{
	enum keeper_patience was = keeper_conn_set_patience(KEEPER_BRIEF);
	struct keeper_disk d;
	struct err ignored;
	int r = KEEPER_CALL(e, &ignored, keeper_client_disk, e->opts.disk_reserve, &d, &ignored);

	(void)keeper_conn_set_patience(was);
	set_disk(e, r == 0 ? &d : NULL);
}

void disk_space_poll_host(struct engine *e)
{
	set_disk(e, NULL);
}

void disk_space_get(struct engine *e, struct disk_space *ret)
{
	MUTEX_GUARD(&e->mutex);
	*ret = e->disk;
}

static void format_size(uint64_t bytes, char ret[SIZE_TEXT])
{
	units_format(bytes & ~((1ull << 20) - 1), ret); /* whole MiB */
}

static void describe_briefly(enum disk_state state, char ret[DISK_TEXT])
{
	static const char *const texts[] = {
		[DISK_OK] = "",
		[DISK_FULL] = "the server's disk is full; delete sessions or snapshots, or ask "
			      "the administrator to free space",
		[DISK_FAILED] = "the volume of the sandboxes cannot be written to; it is mounted "
				"again once the server's disk has space",
	};

	snprintf(ret, DISK_TEXT, "%s", texts[state]);
}

void disk_space_describe(const struct disk_space *d, bool full, char ret[DISK_TEXT])
{
	char free[SIZE_TEXT], reserve[SIZE_TEXT], room[SIZE_TEXT];

	format_size(d->last.free_bytes, free);
	format_size(d->last.reserve_bytes, reserve);
	format_size(d->last.room_bytes, room);
	if (!full || d->state == DISK_OK)
		describe_briefly(d->state, ret);
	else if (d->state == DISK_FAILED)
		snprintf(ret, DISK_TEXT,
			 "the volume of the sandboxes cannot be written to; it is mounted again "
			 "once the server's disk has space (%s free now)",
			 free);
	else if (d->last.free_bytes < d->last.reserve_bytes + d->last.reserve_bytes / 4)
		snprintf(ret, DISK_TEXT,
			 "the server's disk is full: %s free, %s must stay free (setting: "
			 "disk_reserve); delete sessions or snapshots, or free space on the server",
			 free, reserve);
	else
		snprintf(ret, DISK_TEXT,
			 "the server's disk is full: %s left for the files of sandboxes; delete "
			 "sessions or snapshots, or free space on the server",
			 room);
}

int disk_space_check(struct engine *e, struct err *err)
{
	struct disk_space d;
	char text[DISK_TEXT];

	disk_space_get(e, &d);
	if (d.last.total_bytes) {
		disk_space_poll_host(e); /* the timers may not have seen yet that it is full */
		disk_space_get(e, &d);
	}
	if (d.state != DISK_OK || !d.last.total_bytes) { /* it may have changed since */
		disk_space_poll(e);
		disk_space_get(e, &d);
	}
	if (d.state == DISK_OK)
		return 0;
	disk_space_describe(&d, e->opts.library, text);
	err_set(err, ERR_LIMIT, "%s", text);
	err->sys = ENOSPC;
	return -1;
}
