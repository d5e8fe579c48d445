/* SPDX-License-Identifier: Apache-2.0 */
/* Ending a sandbox: everything inside is killed at once and the answer goes out; directories,
 * cgroups and files follow as soon as the kernel has let go of the processes. The directory moves
 * to trash/ first, so that whatever happens in between, the next start knows what to finish. */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file.h"
#include "base/hook.h"
#include "runtime/sys.h"

void keeper_kill_init(const struct box *b)
{
	auto_close int fd = b->pid > 0 ? sys_pidfd_open(b->pid) : -1;

	/* by descriptor, and only if it is still the one we started; a record without a start time
	 * is of one that was dead when it was written, and its number may be another's by now */
	if (fd >= 0 && box_is_alive(b))
		(void)sys_pidfd_send_signal(fd, SIGKILL);
}

static void kill_box(struct keeper *k, const struct box *b)
{
	(void)cgroup_kill(&k->cgroups, b->group);
	keeper_kill_init(b); /* ends its whole pid namespace: all there is without cgroups */
}

int keeper_destroy(struct keeper *k, struct box *b, struct err *err)
{
	hook_crash("destroy:start");
	/* first of all: whatever fails after this, nothing of it runs on */
	kill_box(k, b);
	hook_crash("destroy:killed");
	if (renameat(k->boxes, b->id, k->trash, b->id) < 0)
		return err_sys(err, errno, "sandbox %s", b->id);
	hook_crash("destroy:moved");
	box_remove(&k->table, b->id);
	k->trash_count++;
	return 0;
}

void keeper_discard(struct keeper *k, struct box *b)
{
	auto_close int dir =
		openat(k->boxes, b->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (dir >= 0)
		(void)box_record_write(dir, b);
	box_remove(&k->table, b->id);
	if (renameat(k->boxes, b->id, k->trash, b->id) < 0)
		return;
	kill_box(k, b);
	k->trash_count++;
}

/* One entry of the trash; -EBUSY while its processes are still dying. */
static int remove_one(int trash, const char *id, struct keeper *k)
{
	char entry[KEEPER_ID_SIZE + 4];
	struct box b = { .pid = 0 };
	struct err err;
	auto_close int dir = openat(trash, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (strlen(id) >= sizeof(b.id))
		return file_remove_tree_at(trash, id);
	if (dir < 0 || box_record_read(dir, &b) < 0)
		snprintf(b.group, sizeof(b.group), "%s", id);
	snprintf(b.id, sizeof(b.id), "%s", id);
	kill_box(k, &b);
	keeper_reap();
	if (cgroup_is_populated(&k->cgroups, b.group) || box_is_alive(&b))
		return -EBUSY;
	if (cgroup_remove(&k->cgroups, b.group) < 0)
		return -EBUSY;
	hook_crash("trash:cgroup");
	snprintf(entry, sizeof(entry), "s-%s", id);
	if (b.store != KEEPER_STORE_MEMORY && shelf_drop(&k->shelf, entry, &err) < 0)
		return -EBUSY;
	hook_crash("trash:files");
	return file_remove_tree_at(trash, id);
}

static int remove_each(int trash, const char *id, void *arg)
{
	struct keeper *k = arg;

	if (remove_one(trash, id, k) < 0)
		k->trash_count++;
	return 0;
}

bool keeper_empty_trash(struct keeper *k)
{
	if (k->trash_count == 0)
		return true;
	k->trash_count = 0;
	if (file_each_at(k->trash, ".", remove_each, k) < 0)
		k->trash_count++;
	return k->trash_count == 0;
}
