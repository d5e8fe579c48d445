/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/file_io.h"
#include "keeper/helper_child.h"
#include "keeper/job_table.h"
#include "keeper/sandbox_adopt.h"
#include "keeper/volume_guard.h"
#include "runtime/linux_calls.h"
#include "wire/enforcement.h"

#ifndef LODGE_LIBEXECDIR
#define LODGE_LIBEXECDIR "/usr/libexec/lodge"
#endif

enum {
	PARTS_AHEAD = 4,
	LOCK_WAIT_MS = 10000,
	LOCK_STEP_MS = 5,
};

void keeper_reap(struct keeper *k)
{
	siginfo_t info = { .si_pid = 0 };

	/* its start time can be read until it is reaped */
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0) {
		pid_t pid = info.si_pid;
		uint64_t start = sandbox_table_zombie_start_time(pid);
		int status;

		info.si_pid = 0;
		if (waitpid(pid, &status, WNOHANG) == pid && !job_table_reaped(pid, status) &&
		    !volume_guard_reaped(pid) && !helper_child_reaped(pid))
			sandbox_table_note_exit(&k->table, pid, start, status);
	}
}

static int open_subdir(int dir, const char *name, mode_t mode, struct err *err)
{
	int fd;

	if (mkdirat(dir, name, mode) < 0 && errno != EEXIST)
		return err_sys(err, errno, "%s", name);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_sys(err, errno, "%s", name) : fd;
}

/* For an ordinary user: become root of a user namespace that maps only this user. */
static int enter_userns(struct err *err)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r;

	if (unshare(CLONE_NEWUSER) < 0)
		return err_sys(err, errno,
			       "user namespace (run `lodge doctor` to see what is missing)");
	(void)file_printf_at(AT_FDCWD, "/proc/self/setgroups", "deny");
	r = file_printf_at(AT_FDCWD, "/proc/self/uid_map", "0 %u 1", uid);
	if (r == 0)
		r = file_printf_at(AT_FDCWD, "/proc/self/gid_map", "0 %u 1", gid);
	return r < 0 ? err_sys(err, -r, "map the user into its namespace") : 0;
}

/* From now on, mounts of the keeper are visible only to it and its children. Mounts of the host
 * still propagate to the keeper. */
static int enter_mountns(struct err *err)
{
	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(err, errno, "mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_sys(err, errno, "make mounts private");
	return 0;
}

static void format_dir_id(const struct stat *st, char ret[40])
{
	snprintf(ret, 40, "%llx.%llx", (unsigned long long)st->st_dev,
		 (unsigned long long)st->st_ino);
}

static int open_home(struct keeper *k, const char *home, struct err *err)
{
	struct stat st;
	char id[40];

	if (mkdir(home, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "%s", home);
	k->home = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (k->closed ? O_NOFOLLOW : 0));
	if (k->home < 0 || fstat(k->home, &st) < 0)
		return err_sys(err, errno, "%s", home);
	format_dir_id(&st, id);
	if (k->closed && strcmp(id, k->closed) != 0)
		return err_set(err, ERR_DENIED, "%s is not the directory that --closed names",
			       home);
	/* Ids inside a sandbox are ids on disk. No other user may reach a set-id file of a guest,
	 * or place a file below the root of the sandboxes. */
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set(
			err, ERR_DENIED,
			"%s must be owned by this user and not be writable by group or others",
			home);
	if ((st.st_mode & 077) && fchmod(k->home, 0700) < 0)
		return err_sys(err, errno, "%s", home);
	return 0;
}

static int open_run(struct keeper *k, struct err *err)
{
	auto_close int lodge = -1;
	char name[40];
	struct stat st;

	if (k->rootless) {
		k->run = open_subdir(k->home, "run", 0711, err);
		return k->run < 0 ? -1 : 0;
	}
	if (fstat(k->home, &st) < 0)
		return err_sys(err, errno, "home");
	lodge = open_subdir(AT_FDCWD, "/run/lodge", 0711, err);
	if (lodge < 0)
		return -1;
	format_dir_id(&st, name);
	k->run = open_subdir(lodge, name, 0711, err);
	k->idmap_host.ids = steal_fd(&lodge);
	return k->run < 0 ? -1 : 0;
}

/* The keeper of an engine that was killed needs some time to notice and exit. */
static bool lock_state(const struct keeper *k)
{
	int tries = k->oneshot ? 1 : LOCK_WAIT_MS / LOCK_STEP_MS;

	for (int i = 0; i < tries; i++) {
		if (flock(k->state, LOCK_EX | LOCK_NB) == 0)
			return true;
		if (i + 1 < tries)
			usleep(LOCK_STEP_MS * 1000);
	}
	return false;
}

/* The lock is held until the process exits: a later keeper that finds the directory unlocked knows
 * that this one died. */
static int open_state(struct keeper *k, char name[32], struct err *err)
{
	for (int i = 0; i < 64; i++) {
		uint64_t r = 0;
		struct stat st;

		(void)getrandom(&r, sizeof(r), 0);
		snprintf(name, 32, k->oneshot ? "o-%016llx" : "d", (unsigned long long)r);
		k->state = open_subdir(k->run, name, 0711, err);
		if (k->state < 0 && !(k->oneshot && err->sys == ENOENT))
			return -1;
		if (k->state >= 0 && lock_state(k) && fstat(k->state, &st) == 0 && st.st_nlink > 0)
			return 0;
		if (!k->oneshot)
			return err_set(err, ERR_CONFLICT,
				       "another lodge-keeper is using this home");
		if (k->state >= 0) /* another keeper found it before it was locked and removes it */
			close(k->state);
	}
	return err_set(err, ERR_INTERNAL, "cannot make a state directory");
}

/* lodge-init is beside lodge-keeper, or in the installation directory. */
static int load_init(struct keeper *k, struct err *err)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);
	char *slash;

	if (n < 0)
		return err_sys(err, errno, "/proc/self/exe");
	path[n] = 0;
	slash = strrchr(path, '/');
	memcpy(slash + 1, "lodge-init", sizeof("lodge-init"));
	if (access(path, R_OK) < 0)
		snprintf(path, sizeof(path), "%s/lodge-init", LODGE_LIBEXECDIR);
	k->spawn.init = sandbox_spawn_seal_init(path, err);
	if (k->spawn.init < 0)
		return -1;
	k->spawn.self = sys_pidfd_open(getpid());
	return k->spawn.self < 0 ? err_sys(err, errno, "pidfd_open") : 0;
}

static int open_scratch(struct keeper *k, struct err *err)
{
	static const char *const points[] = { "base", "vol", "cgroup" };

	k->scratch = open_subdir(k->run, "mnt", 0700, err);
	if (k->scratch < 0)
		return -1;
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		if (mkdirat(k->scratch, points[i], 0700) < 0 && errno != EEXIST)
			return err_sys(err, errno, "%s", points[i]);
	return rootfs_host_init(k->scratch, err);
}

int keeper_cgroup_id(int state, uint64_t *ret)
{
	char text[32];
	uint64_t id = 0;

	if (file_read_at(state, "group", text, sizeof(text)) == 16) {
		*ret = strtoull(text, NULL, 16);
		return 0;
	}
	(void)getrandom(&id, sizeof(id), 0);
	snprintf(text, sizeof(text), "%016llx", (unsigned long long)id);
	*ret = id;
	return file_replace_at(state, "group", text, 16);
}

static int open_cgroups(struct keeper *k, struct err *err)
{
	char path[64];
	uint64_t id = 0;
	int r = keeper_cgroup_id(k->state, &id);

	if (r < 0)
		return err_sys(err, -r, "state");
	snprintf(path, sizeof(path), "/proc/self/fd/%d/cgroup", k->scratch);
	cgroup_host_init(&k->cgroups, id, path);
	if (k->cgroups.named_missing)
		fputs("lodge-keeper: LODGE_CGROUP: no such cgroup; using the default\n", stderr);
	k->features = cgroup_host_features(&k->cgroups) | (k->rootless ? 0 : KEEPER_HAS_ROOT);
	return 0;
}

int keeper_open(struct keeper *k, const char *home, char state_name[32], struct err *err)
{
	k->rootless = geteuid() != 0;
	/* First, because descriptors of directories belong to the mount namespace in which they
	 * were opened. */
	if ((k->rootless && enter_userns(err) < 0) || enter_mountns(err) < 0)
		return -1;
	if (open_home(k, home, err) < 0 || open_run(k, err) < 0 ||
	    open_state(k, state_name, err) < 0)
		return -1;
	if (open_scratch(k, err) < 0 || load_init(k, err) < 0)
		return -1;
	k->sandboxes = open_subdir(k->state, "sandboxes", 0711, err);
	k->trash = k->sandboxes < 0 ? -1 : open_subdir(k->state, "trash", 0700, err);
	if (k->trash < 0 || open_cgroups(k, err) < 0)
		return -1;
	seccomp_build(&k->spawn.filter[KEEPER_CLASS_USER], false);
	seccomp_build(&k->spawn.filter[KEEPER_CLASS_ROOT], true);
	k->spawn.rootless = k->idmap_host.rootless = k->rootless;
	k->storage = (struct storage){
		.dir = -1,
		.volume = -1,
		.home = k->home,
		.scratch = k->scratch,
		.rootless = k->rootless,
		.defer_removal = !k->oneshot, /* a one-shot keeper must not leave trees behind */
	};
	k->roots = (struct root_source){ &k->storage, k->home, k->rootless };
	k->parts_target = k->oneshot ? 0 : PARTS_AHEAD;
	return 0;
}

void keeper_enforcement(struct keeper *k, struct enforcement *ret)
{
	struct err later; /* a create reports it */

	if (!k->oneshot)
		(void)storage_open(&k->storage, &later);
	*ret = (struct enforcement){ .known = true, .features = k->features };
	if (storage_has_limit(&k->storage))
		ret->features |= KEEPER_HAS_DISK_LIMIT;
	else
		snprintf(ret->disk_problem, sizeof(ret->disk_problem), "%s",
			 storage_limit_problem(&k->storage));
}

void keeper_close(struct keeper *k, const char *state_name)
{
	/* Again: at the start, a child that outlived its keeper may have held the lock. */
	if (!k->sweep_failed)
		sandbox_adopt_sweep_oneshots(k, state_name);
	cgroup_host_fini(&k->cgroups);
	/* What could not be removed in time stays recorded, for the next keeper. */
	if (k->oneshot && k->trash_count == 0 && k->table.count == 0)
		(void)file_remove_tree_at(k->run, state_name);
}
