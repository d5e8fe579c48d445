/* SPDX-License-Identifier: Apache-2.0 */
/* AGENT_JOB_REMOVE: a whole tree, however deep, without following a link. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "init/files/dir_walk.h"
#include "init/files/parent_dir.h"
#include "init/files/file_job_op.h"

enum { LEVELS = 100, PASSES = 16, LIFTS_MAX = 1 << 20 };

/* What is deeper than this process likes to go is moved to the top first. */
static unsigned lifts;

static int lift(int dir, const char *name, int top)
{
	char up[32];
	int r = -EEXIST;

	/* somebody may have such a name already, with something in it */
	while (r == -EEXIST && lifts < LIFTS_MAX) {
		snprintf(up, sizeof(up), ".lodge-rm-%u", lifts++);
		r = parent_dir_rename(dir, name, top, up, true);
	}
	return r;
}

static int empty_dir(int dir, int top, unsigned level);

static int remove_one(int dir, const char *name, int top, unsigned level)
{
	auto_close int sub = -1;
	int r;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	if (level >= LEVELS)
		return lift(dir, name, top);
	sub = walk_dir(dir, name);
	if (sub < 0)
		return sub == -ENOENT || sub == -ENOTDIR ? 0 : sub; /* another by now */
	r = empty_dir(sub, top, level + 1);
	if (r < 0)
		return r;
	return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTEMPTY ||
			       errno == ENOTDIR
		       ? 0
		       : -errno;
}

static int empty_dir(int dir, int top, unsigned level)
{
	int own = fcntl(dir, F_DUPFD_CLOEXEC, 0), r = 0;
	DIR *d = own < 0 ? NULL : fdopendir(own);
	struct dirent *e;

	if (!d) {
		r = -errno;
		if (own >= 0)
			close(own);
		return r;
	}
	rewinddir(d);
	while (r == 0 && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = remove_one(dir, e->d_name, top, level);
	}
	closedir(d);
	return r;
}

/* A directory read while it changes may need another look, and lifted trees come back here. */
static bool is_empty(int dir)
{
	struct name_list names;
	bool empty;

	if (name_list_read(&names, dir) < 0)
		return true;
	empty = names.n == 0;
	name_list_free(&names);
	return empty;
}

int remove_inside(int dir)
{
	unsigned before;
	int r = 0;

	/* as often as there is more to lift, but not for ever against one who keeps adding */
	for (int pass = 0; pass < PASSES; pass += before == lifts) {
		before = lifts;
		r = empty_dir(dir, dir, 0);
		if (r < 0 || is_empty(dir))
			break;
	}
	return r;
}

int remove_tree(int dir, const char *name)
{
	auto_close int sub = -1;
	struct stat st;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(dir, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
	sub = walk_dir(dir, name);
	if (sub < 0)
		return sub == -EACCES && unlinkat(dir, name, AT_REMOVEDIR) == 0 ? 0 : sub;
	r = remove_inside(sub);
	if (r < 0)
		return r;
	return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

int worker_remove(const struct worker_job *j, struct err *err)
{
	struct where w = { .dir = -1 };
	int r = parent_dir_find(&w, AT_FDCWD, j->path, false);

	if (r == -ENOENT && j->path[0])
		return 0;
	if (r == 0) {
		r = remove_tree(w.dir, w.name);
		close(w.dir);
	}
	return r < 0 ? err_sys(err, -r, "%.160s", j->path) : 0;
}
