/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/volume_guard.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/helper_child.h"
#include "keeper/job_table.h"
#include "keeper/sandbox_end.h"
#include "keeper/slot_pool.h"
#include "runtime/storage/volume_space.h"

enum {
	RECOVER_MS = 15000, /* killed processes hold the old mount until they are gone */
	RECOVER_STEP_MS = 20,
};

static struct guard_shared { /* with the child */
	_Atomic uint64_t reserve;
} * shared;
static pid_t watcher;

static uint64_t get_default_reserve(const struct keeper *k)
{
	struct statvfs fs = { 0 };

	(void)fstatvfs(k->home, &fs);
	return limits_disk_reserve((uint64_t)fs.f_blocks * fs.f_frsize);
}

static uint64_t get_reserve(const struct keeper *k)
{
	return shared && shared->reserve ? shared->reserve : get_default_reserve(k);
}

static bool share(void)
{
	void *p;

	if (shared)
		return true;
	p = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	shared = p;
	return true;
}

static _Noreturn void watch(int file, int dir)
{
	struct volume_watch w = { 0 };

	(void)prctl(PR_SET_NAME, "lodge-volume"); /* not a second keeper, for who counts them */
	for (;;)
		usleep((unsigned)volume_space_step(file, dir, shared->reserve, &w) * 1000);
}

static void start_watcher(struct keeper *k)
{
	int fds[] = { k->storage.volume, k->storage.dir };
	pid_t pid;

	if (!share())
		return;
	shared->reserve = get_reserve(k);
	pid = helper_child_fork(fds, 2, CHILD_AWAITED);
	if (pid == 0)
		watch(fds[0], fds[1]);
	watcher = pid > 0 ? pid : 0;
}

void volume_guard_end(void)
{
	if (!watcher)
		return;
	(void)kill(watcher, SIGKILL);
	(void)waitpid(watcher, NULL, 0);
	watcher = 0;
}

bool volume_guard_reaped(pid_t pid)
{
	if (pid != watcher)
		return false;
	watcher = 0;
	return true;
}

/* ---- a volume that turned read-only ---------------------------------------------------------- */

/* Its record stays: the engine finds it ended, asks why, and seals its files. */
static void end_on_disk(struct sandbox_record *sb, void *arg)
{
	(void)arg;
	if (sb->store != KEEPER_STORE_DISK)
		return;
	sb->volume_failed = true;
	sandbox_end_kill_init(sb);
}

/* Everything that holds the mount ends: btrfs can be mounted again only when the last use of the
 * old mount is gone. */
static void release_volume(struct keeper *k)
{
	fputs("lodge-keeper: the volume turned read-only after a failed write; its sandboxes are "
	      "ended "
	      "and it is mounted again\n",
	      stderr);
	volume_guard_end();
	job_table_cancel_all();
	while (k->nslots > 0)
		slot_pool_free(k, k->slots[--k->nslots], true);
	sandbox_table_each(&k->table, end_on_disk, k);
	storage_close(&k->storage);
}

static void count_alive(struct sandbox_record *sb, void *arg)
{
	*(size_t *)arg += sb->store == KEEPER_STORE_DISK && sandbox_table_is_alive(sb);
}

static bool has_sandboxes_on_disk(struct keeper *k)
{
	size_t n = 0;

	sandbox_table_each(&k->table, count_alive, &n);
	return n > 0;
}

/* True: the storage is open and can be written to. */
static bool try_open(struct keeper *k, struct err *err)
{
	if (storage_is_failed(&k->storage)) {
		release_volume(k);
		return false;
	}
	if (storage_open(&k->storage, err) == 0)
		return true;
	/* a keeper before this one left it */
	if (err->sys == EROFS && has_sandboxes_on_disk(k))
		release_volume(k);
	return false;
}

void volume_guard_recover(struct keeper *k)
{
	struct err err = { 0 };

	if (!storage_is_made(&k->storage))
		return;
	for (int ms = 0; ms < RECOVER_MS; ms += RECOVER_STEP_MS) {
		if (try_open(k, &err) || (k->storage.dir < 0 && err.sys != EROFS))
			break;
		(void)sandbox_end_empty_trash(k);
		keeper_reap(k);
		usleep(RECOVER_STEP_MS * 1000);
	}
	volume_guard_step(k);
}

void volume_guard_step(struct keeper *k)
{
	if (k->storage.volume >= 0 && !watcher && !k->draining)
		start_watcher(k);
}

/* ---- report ---------------------------------------------------------------------------------- */

static void set_reserve(struct keeper *k, uint64_t reserve)
{
	if (share())
		shared->reserve = reserve ? reserve : get_default_reserve(k);
}

static void report_host(const struct keeper *k, struct keeper_disk *ret)
{
	struct statvfs fs = { 0 };

	(void)fstatvfs(k->home, &fs);
	ret->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	ret->total_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
	ret->reserve_bytes = get_reserve(k);
	ret->room_bytes =
		ret->free_bytes > ret->reserve_bytes ? ret->free_bytes - ret->reserve_bytes : 0;
}

void volume_guard_report(struct keeper *k, uint64_t reserve, struct keeper_disk *ret)
{
	struct volume_space v = { 0 };
	struct err err = { 0 };

	set_reserve(k, reserve);
	*ret = (struct keeper_disk){ 0 };
	report_host(k, ret);
	if (!storage_is_made(&k->storage))
		return;
	if (!try_open(k, &err)) {
		ret->failed = 1;
		return;
	}
	volume_guard_step(k);
	if (k->storage.volume < 0 || volume_space_read(k->storage.volume, k->storage.dir, &v) < 0)
		return;
	ret->volume_bytes = v.device_bytes;
	ret->volume_free_bytes = v.free_bytes;
	ret->reserved = volume_space_is_reserved(&v);
	ret->room_bytes = volume_space_room(&v, ret->reserve_bytes);
}
