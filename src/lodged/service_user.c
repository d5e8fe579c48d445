/* SPDX-License-Identifier: Apache-2.0 */
#include "lodged/service_user.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"

enum { UNUSED_ID = 60777, DEPTH_MAX = 8 };

static const char keeper[] = "keeper", half[] = "keeper.new";

int service_user_find(const char *user, struct service_user *ret, struct err *err)
{
	struct service_user o = { UNUSED_ID, UNUSED_ID };
	struct passwd pw, *found = NULL;
	char text[4096], *end = NULL;
	unsigned long n;

	(void)getpwnam_r(user ? user : "lodge", &pw, text, sizeof(text), &found);
	if (found) {
		o = (struct service_user){ found->pw_uid, found->pw_gid };
	} else if (user) {
		errno = 0;
		n = strtoul(user, &end, 10);
		o.uid = o.gid = (uid_t)n;
		if (errno || end == user || *end || *user == '-' || n >= UINT32_MAX)
			return err_set(err, ERR_INVALID, "user: unknown user \"%.64s\"", user);
	}
	if (o.uid == 0 || o.gid == 0 || o.uid == (uid_t)-1)
		return err_set(err, ERR_INVALID,
			       "user: lodged must not run as root; choose another user");
	*ret = o;
	return 0;
}

/* ---- the data directory ---------------------------------------------------------------------- */

static int chown_tree(int dir, const char *name, const struct service_user *o, int depth);

struct chown_each {
	const struct service_user *o;
	int depth;
};

static int chown_one(int dir, const char *name, void *arg)
{
	const struct chown_each *c = arg;

	return chown_tree(dir, name, c->o, c->depth - 1);
}

/* Only for directories that root alone could write to: no other user can swap names or links. */
static int chown_tree(int dir, const char *name, const struct service_user *o, int depth)
{
	struct chown_each c = { o, depth };
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchownat(dir, name, o->uid, o->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) && depth ? file_each_at(dir, name, chown_one, &c) : 0;
}

static bool is_one_of(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (fnmatch(*names, name, 0) == 0)
			return true;
	return false;
}

static const char *const keepers[] = { "volume.btrfs", "volume.lock", "volume.new", "store",
				       "run",	       "host-*",      ".host-*",    NULL };
static const char *const engines[] = { "lodge.db",  "lodge.db-*", "lodge.db.*", "logs",
				       "templates", "admin.key*", "lodge.sock", NULL };
static const char *const markers[] = { "lodge.db",   "volume.btrfs", "templates", "host-*",
				       "keeper.new", "keeper",	     NULL };

static int rearrange_one(int dir, const char *name, void *arg)
{
	const struct service_user *o = arg;
	char to[sizeof(half) + NAME_MAX + 2];

	if (is_one_of(engines, name))
		return chown_tree(dir, name, o, DEPTH_MAX);
	if (!is_one_of(keepers, name)) /* not a file of lodge */
		return 0;
	snprintf(to, sizeof(to), "%s/%s", half, name);
	return renameat(dir, name, dir, to) < 0 ? -errno : 0;
}

struct contents {
	bool any, ours;
};

static int check_entry(int dir, const char *name, void *arg)
{
	struct contents *s = arg;
	struct stat st;

	/* Other files, such as a configuration, are allowed. */
	s->any |= fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode);
	s->ours |= is_one_of(markers, name);
	return 0;
}

/* Protects a directory that was named by mistake. */
static int check_is_ours(int dir)
{
	struct contents s = { 0 };
	int r = file_each_at(dir, ".", check_entry, &s);

	return r < 0 ? r : s.any && !s.ours ? -EEXIST : 0;
}

static int fail_busy(int dir, const char *name, void *arg)
{
	(void)arg, (void)dir, (void)name;
	return -EBUSY;
}

/* A keeper finds its sandboxes by the identity of its directory, which is about to change. */
static int check_empty(const struct stat *home)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/run/lodge/%llx.%llx/d/sandboxes",
		 (unsigned long long)home->st_dev, (unsigned long long)home->st_ino);
	r = file_each_at(AT_FDCWD, path, fail_busy, NULL);
	return r == -ENOENT ? 0 : r;
}

/* The keeper's directory gets its final name when it is complete, so an interrupted run is
 * repeated. */
static int rearrange(int dir, const struct stat *st, const struct service_user *o)
{
	struct service_user own = *o;
	struct stat there;
	int r = check_is_ours(dir);

	if (r < 0)
		return r;
	if (fstatat(dir, keeper, &there, AT_SYMLINK_NOFOLLOW) < 0) {
		r = check_empty(st);
		if (r < 0)
			return r;
		if (mkdirat(dir, half, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	r = file_each_at(dir, ".", rearrange_one, &own);
	if (r == 0 && renameat(dir, half, dir, keeper) < 0 && errno != ENOENT)
		r = -errno;
	if (r == 0 && (fchmod(dir, 0700) < 0 || fchown(dir, o->uid, o->gid) < 0))
		r = -errno;
	return r;
}

/* Takes ownership of a file that root restored from a backup. Refuses hard links: another user may
 * own the other name. */
static int take_restored(int dir, const char *name, void *arg)
{
	static const char *const names[] = { "lodge.db", "lodge.db-wal", "admin.key", NULL };
	auto_close int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const struct service_user *o = arg;
	struct stat st;

	if (!is_one_of(names, name) || fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_nlink != 1 || st.st_uid != 0)
		return 0;
	return fchown(fd, o->uid, o->gid) < 0 ? -errno : 0;
}

int service_user_data(const char *home, const struct service_user *o, struct err *err)
{
	struct service_user own = *o;
	auto_close int dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	int r;

	if (dir < 0 || fstat(dir, &st) < 0)
		return err_sys(err, errno, "%s", home);
	if (st.st_uid != 0 && st.st_uid != o->uid)
		return err_set(err, ERR_DENIED,
			       "%s: owned by user %u; must be owned by root or user %u", home,
			       st.st_uid, o->uid);
	if (st.st_uid == 0) {
		r = rearrange(dir, &st, o);
		if (r == -EBUSY)
			return err_set(err, ERR_CONFLICT,
				       "%s: sandboxes started by root are still running there",
				       home);
		if (r == -EEXIST)
			return err_set(err, ERR_CONFLICT,
				       "%s: contains files that are not lodge's; choose another "
				       "directory with --data",
				       home);
		return r < 0 ? err_sys(err, -r, "%s", home) : 0;
	}
	if (mkdirat(dir, keeper, 0700) < 0 && errno != EEXIST)
		return err_sys(err, errno, "%s/%s", home, keeper);
	r = file_each_at(dir, ".", take_restored, &own);
	return r < 0 ? err_sys(err, -r, "%s", home) : 0;
}

/* So that no program that lodged starts can gain a capability, even from a file that has some.
 * Without CAP_SETPCAP it stays as it is; no_new_privs prevents the same. */
static int drop_bounding_set(void)
{
	for (int cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL || errno == EPERM ? 0
								 : -1; /* EINVAL: after the last */
	return 0;
}

int service_user_become(const struct service_user *o, const char *home, struct err *err)
{
	if (drop_bounding_set() < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(o->gid, o->gid, o->gid) < 0 || setresuid(o->uid, o->uid, o->uid) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "switch to user %u", o->uid);
	/* Allows executing a held-open program through /proc. No other process has this user. */
	(void)prctl(PR_SET_DUMPABLE, 1);
	if (access(home, R_OK | W_OK | X_OK) < 0)
		return err_set(
			err, ERR_DENIED,
			"%s: user %u cannot access it; choose another directory with --data, "
			"or allow access to the directories above it",
			home, o->uid);
	return 0;
}
