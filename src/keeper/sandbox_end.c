/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/sandbox_end.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "base/test_hook.h"
#include "keeper/helper_child.h"
#include "keeper/job_table.h"
#include "runtime/linux_calls.h"

void sandbox_end_kill_init(const struct sandbox_record *sb)
{
	auto_close int fd = sb->pid > 0 ? sys_pidfd_open(sb->pid) : -1;

	/* By pidfd, and only if it is the process that was started: the pid may have been reused. A
	 * record without a start time belongs to a process that was dead when it was written. */
	if (fd >= 0 && sandbox_table_is_alive(sb))
		(void)sys_pidfd_send_signal(fd, SIGKILL);
}

static void kill_sandbox(struct keeper *k, const struct sandbox_record *sb)
{
	(void)cgroup_kill(&k->cgroups, sb->group);
	sandbox_end_kill_init(sb); /* ends its pid namespace, also without cgroups */
}

static void end_sandbox(struct keeper *k, const struct sandbox_record *sb)
{
	if (!k->oneshot && sb->store == KEEPER_STORE_DISK && sandbox_table_is_alive(sb))
		helper_child_hold_root(sb->pid);
	kill_sandbox(k, sb);
	job_table_cancel_snap(sb->id);
}

static int move_to_trash(struct keeper *k, struct sandbox_record *sb, struct err *err)
{
	if (renameat(k->sandboxes, sb->id, k->trash, sb->id) < 0)
		return err_sys(err, errno, "sandbox %s", sb->id);
	hook_crash("destroy:moved");
	sandbox_table_remove(&k->table, sb->id);
	k->trash_count++;
	return 0;
}

/* Records that the files are removed with the sandbox. */
static int mark_files_dropped(int sandboxes, const struct sandbox_record *sb, struct err *err)
{
	struct sandbox_record gone = *sb;
	int r;

	if (sb->files != SANDBOX_FILES_STAY)
		return 0;
	gone.files = SANDBOX_FILES_DROP;
	r = sandbox_table_record_write_at(sandboxes, &gone);
	hook_crash("destroy:marked");
	return r < 0 ? err_sys(err, -r, "sandbox %s", sb->id) : 0;
}

int sandbox_end_destroy(struct keeper *k, struct sandbox_record *sb, struct err *err)
{
	hook_crash("destroy:start");
	/* first, so that no process survives if a later step fails */
	end_sandbox(k, sb);
	hook_crash("destroy:killed");
	return mark_files_dropped(k->sandboxes, sb, err) < 0 ? -1 : move_to_trash(k, sb, err);
}

int sandbox_end_stop(struct keeper *k, struct sandbox_record *sb, struct err *err)
{
	hook_crash("stop:start");
	end_sandbox(k, sb);
	hook_crash("stop:killed");
	return move_to_trash(k, sb, err);
}

static int destroy_trashed(struct keeper *k, int dir, const char *id, bool *ret_found,
			   struct err *err)
{
	struct sandbox_record sb;

	if (sandbox_table_record_read(dir, &sb) < 0 || sb.files != SANDBOX_FILES_STAY)
		return 0; /* already being removed, or about to become a layer again */
	snprintf(sb.id, sizeof(sb.id), "%s", id);
	if (mark_files_dropped(k->trash, &sb, err) < 0)
		return -1;
	*ret_found = true;
	return 0;
}

int sandbox_end_destroy_files(struct keeper *k, const char *id, bool *ret_found, struct err *err)
{
	auto_close int dir = openat(k->trash, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct storage_entry e = storage_entry('k', id);

	if (k->oneshot)
		return 0;
	if (dir >= 0)
		return destroy_trashed(k, dir, id, ret_found, err);
	if (!storage_is_made(&k->storage))
		return 0;
	if (storage_open(&k->storage, err) < 0)
		return -1;
	if (!storage_has(&k->storage, e.name))
		return 0;
	hook_crash("destroy:files");
	if (storage_drop(&k->storage, e.name, err) < 0)
		return -1;
	*ret_found = true;
	return 0;
}

bool sandbox_end_is_pending(const struct keeper *k, const char *id)
{
	return faccessat(k->trash, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void sandbox_end_discard(struct keeper *k, struct sandbox_record *sb)
{
	bool moved;

	(void)sandbox_table_record_write_at(k->sandboxes, sb);
	sandbox_table_remove(&k->table, sb->id);
	moved = renameat(k->sandboxes, sb->id, k->trash, sb->id) == 0;
	kill_sandbox(k, sb); /* even if the state directory is gone: nobody else would */
	k->trash_count += moved;
}

/* Restores a layer that a failed create had taken. If a layer of this name exists meanwhile, the
 * files stay under the sandbox's name. */
static int restore_layer(struct keeper *k, const struct sandbox_record *sb, const char *entry,
			 struct err *err)
{
	struct storage_entry layer = storage_entry('l', sb->layer);

	if (storage_open(&k->storage, err) < 0)
		return -1;
	if (!storage_has(&k->storage, entry) || storage_has(&k->storage, layer.name))
		return 0;
	if (storage_seal(&k->storage, entry, err) < 0)
		return -1;
	return storage_move(&k->storage, entry, layer.name, err);
}

static int remove_files(struct keeper *k, const struct sandbox_record *sb)
{
	struct storage_entry e = sandbox_table_entry(sb);
	struct err err;
	int r;

	if (sb->store == KEEPER_STORE_MEMORY || sb->files == SANDBOX_FILES_STAY)
		return 0;
	r = sb->files == SANDBOX_FILES_BACK ? restore_layer(k, sb, e.name, &err)
					    : storage_drop(&k->storage, e.name, &err);
	return r < 0 ? -EBUSY : 0;
}

/* -EBUSY while processes of the sandbox are dying. */
static int remove_trashed(int trash, const char *id, struct keeper *k)
{
	struct sandbox_record sb = { .pid = 0 };
	auto_close int dir = openat(trash, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (strlen(id) >= sizeof(sb.id))
		return file_remove_tree_at(trash, id);
	if (dir < 0 || sandbox_table_record_read(dir, &sb) < 0)
		snprintf(sb.group, sizeof(sb.group), "%s", id);
	snprintf(sb.id, sizeof(sb.id), "%s", id);
	kill_sandbox(k, &sb);
	keeper_reap(k);
	if (cgroup_is_populated(&k->cgroups, sb.group) || sandbox_table_is_alive(&sb))
		return -EBUSY;
	if (cgroup_remove(&k->cgroups, sb.group) < 0)
		return -EBUSY;
	hook_crash("trash:cgroup");
	if (remove_files(k, &sb) < 0)
		return -EBUSY;
	hook_crash("trash:files");
	return file_remove_tree_at(trash, id);
}

static int count_if_pending(int trash, const char *id, void *arg)
{
	struct keeper *k = arg;

	if (remove_trashed(trash, id, k) < 0)
		k->trash_count++;
	return 0;
}

bool sandbox_end_empty_trash(struct keeper *k)
{
	if (k->trash_count == 0)
		return true;
	k->trash_count = 0;
	if (file_each_at(k->trash, ".", count_if_pending, k) < 0)
		k->trash_count++;
	return k->trash_count == 0;
}
