/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/sandbox_adopt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "keeper/layer_ops.h"
#include "keeper/template_ops.h"
#include "keeper/sandbox_end.h"

enum {
	SWEEP_TRIES = 200,
	SWEEP_WAIT_US = 5000,
	EXIT_WAIT_MS = 10000,
};

/* The value of a line like "PPid:\t12" of /proc/PID/status; 0: no such process or line. */
static uint64_t read_status(pid_t pid, const char *name, int base)
{
	char path[32], text[4096];
	const char *p;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (pid <= 0 || file_read_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return 0;
	p = strstr(text, name);
	return p ? strtoull(p + strlen(name), NULL, base) : 0;
}

static bool is_keeper(pid_t pid)
{
	char path[32], text[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	return pid > 0 && pid != getpid() && file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0 &&
	       strcmp(text, "lodge-keeper\n") == 0;
}

/* An exiting process releases its lock before its children get their parent-death signal, so the
 * previous keeper may still kill a lodge-init that it had not bound yet. Waits until that is
 * decided; true: the process goes on. */
static bool outlives_keeper(pid_t pid)
{
	for (int i = 0; i < EXIT_WAIT_MS && is_keeper((pid_t)read_status(pid, "\nPPid:", 10)); i++)
		usleep(1000);
	return (read_status(pid, "\nSigPnd:", 16) & (1u << (SIGKILL - 1))) == 0;
}

static int adopt_or_trash(int sandboxes, const char *id, void *arg)
{
	struct keeper *k = arg;
	struct sandbox_record sb = { 0 };
	struct err err;
	auto_close int dir = openat(sandboxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	/* Without a record: the create did not finish, or it is an unclaimed slot. With files that
	 * are dropped or restored: the create did not finish, or it was being destroyed. */
	if (dir >= 0 && strlen(id) < sizeof(sb.id) && sandbox_table_record_read(dir, &sb) == 0 &&
	    sandbox_table_is_alive(&sb) && outlives_keeper(sb.pid) && sandbox_table_is_alive(&sb) &&
	    sb.files <= SANDBOX_FILES_STAY) {
		snprintf(sb.id, sizeof(sb.id), "%s", id);
		if (!sb.paused) /* a job may have frozen it when the keeper died */
			(void)cgroup_freeze(&k->cgroups, sb.group, false, &err);
		if (sandbox_table_add(&k->table, &sb))
			return 0;
	}
	if (renameat(sandboxes, id, k->trash, id) == 0)
		k->trash_count++;
	return 0;
}

static int count_entry(int dir, const char *name, void *arg)
{
	(void)dir, (void)name;
	++*(size_t *)arg;
	return 0;
}

struct match {
	const char *group;
	bool found;
};

static void match_group(struct sandbox_record *sb, void *arg)
{
	struct match *m = arg;

	m->found = m->found || strcmp(sb->group, m->group) == 0;
}

/* Removes a cgroup without a record: the keeper died between the two. */
static void drop_stray_group(const char *name, void *arg)
{
	struct keeper *k = arg;
	struct match m = { name, false };

	sandbox_table_each(&k->table, match_group, &m);
	if (m.found)
		return;
	for (int i = 0; i < SWEEP_TRIES; i++) {
		(void)cgroup_kill(&k->cgroups, name);
		if (!cgroup_is_populated(&k->cgroups, name) &&
		    cgroup_remove(&k->cgroups, name) == 0)
			return;
		keeper_reap(k);
		usleep(SWEEP_WAIT_US);
	}
}

int sandbox_adopt_all(struct keeper *k, struct err *err)
{
	int r = file_each_at(k->sandboxes, ".", adopt_or_trash, k);

	if (r < 0)
		return err_sys(err, -r, "sandboxes");
	(void)file_each_at(k->trash, ".", count_entry, &k->trash_count);
	(void)sandbox_end_empty_trash(k);
	cgroup_each(&k->cgroups, drop_stray_group, k);
	layer_ops_sweep(k);
	template_ops_sweep(k);
	return 0;
}

static int move_to_trash(int sandboxes, const char *id, void *arg)
{
	struct keeper *k = arg;

	return renameat(sandboxes, id, k->trash, id) < 0 ? -errno : 0;
}

/* Ends every sandbox of a dead one-shot keeper, whose state directory is unlocked. False: some
 * could not be removed. */
static bool sweep_state(struct keeper *k, int state)
{
	static struct keeper dead; /* too large for the stack */
	uint64_t id = 0;
	bool done = true; /* without both directories, that keeper had created nothing else */

	dead = *k;
	memset(&dead.table, 0, sizeof(dead.table));
	dead.sandboxes =
		openat(state, "sandboxes", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	dead.trash = openat(state, "trash", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dead.sandboxes >= 0 && dead.trash >= 0 && keeper_cgroup_id(state, &id) == 0) {
		cgroup_host_init(&dead.cgroups, id, ".");
		done = file_each_at(dead.sandboxes, ".", move_to_trash, &dead) == 0;
		dead.trash_count = 1;
		for (int i = 0; i < SWEEP_TRIES && !sandbox_end_empty_trash(&dead); i++)
			usleep(SWEEP_WAIT_US);
		done = done && dead.trash_count == 0;
		if (done)
			cgroup_each(&dead.cgroups, drop_stray_group, &dead);
		cgroup_host_fini(&dead.cgroups);
	}
	if (dead.sandboxes >= 0)
		close(dead.sandboxes);
	if (dead.trash >= 0)
		close(dead.trash);
	k->storage = dead.storage; /* the sweep may have opened it */
	return done;
}

struct sweep {
	struct keeper *k;
	const char *own;
};

static int sweep_if_dead(int dir, const char *name, void *arg)
{
	struct sweep *s = arg;
	auto_close int state = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (strncmp(name, "o-", 2) != 0 || strcmp(name, s->own) == 0 || state < 0 ||
	    flock(state, LOCK_EX | LOCK_NB) < 0)
		return 0;
	if (sweep_state(s->k, state))
		(void)file_remove_tree_at(dir, name);
	else
		s->k->sweep_failed = true;
	return 0;
}

void sandbox_adopt_sweep_oneshots(struct keeper *k, const char *own)
{
	struct sweep s = { k, own };

	(void)file_each_at(k->run, ".", sweep_if_dead, &s);
}
