/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/remove_job.h"

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
#include "init/files/name_list.h"

enum { LEVELS = 100, PASSES = 16, MOVES_MAX = 1 << 20 };

/* Directories below LEVELS are moved to the top first, which bounds recursion and descriptors. */
static unsigned moves;

static int move_to_top(int dir, const char *name, int top)
{
	char up[32];
	int r = -EEXIST;

	/* The name may exist already. */
	while (r == -EEXIST && moves < MOVES_MAX) {
		snprintf(up, sizeof(up), ".lodge-rm-%u", moves++);
		r = parent_dir_rename(dir, name, top, up, true);
	}
	return r;
}

static int remove_entries(int dir, int top, unsigned level);

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
		return move_to_top(dir, name, top);
	sub = dir_walk_open(dir, name);
	if (sub < 0)
		return sub == -ENOENT || sub == -ENOTDIR ? 0 : sub; /* replaced meanwhile */
	r = remove_entries(sub, top, level + 1);
	if (r < 0)
		return r;
	return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTEMPTY ||
			       errno == ENOTDIR
		       ? 0
		       : -errno;
}

static int remove_entries(int dir, int top, unsigned level)
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

/* A directory that changes while it is read may need another pass, and directories that were moved
 * to the top are found here. */
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

int remove_job_contents(int dir)
{
	unsigned before;
	int r = 0;

	/* Repeat while passes move directories to the top, but not forever against a process that
	 * keeps adding files. */
	for (int pass = 0; pass < PASSES; pass += before == moves) {
		before = moves;
		r = remove_entries(dir, dir, 0);
		if (r < 0 || is_empty(dir))
			break;
	}
	return r;
}

int remove_job_tree(int dir, const char *name)
{
	auto_close int sub = -1;
	struct stat st;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(dir, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
	sub = dir_walk_open(dir, name);
	if (sub < 0)
		return sub == -EACCES && unlinkat(dir, name, AT_REMOVEDIR) == 0 ? 0 : sub;
	r = remove_job_contents(sub);
	if (r < 0)
		return r;
	return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

int remove_job_run(const struct file_job *j, struct err *err)
{
	struct parent_dir w = { .dir = -1 };
	int r = parent_dir_find(&w, AT_FDCWD, j->path, false);

	if (r == -ENOENT && j->path[0])
		return 0;
	if (r == 0) {
		r = remove_job_tree(w.dir, w.name);
		close(w.dir);
	}
	return r < 0 ? err_sys(err, -r, "%.160s", j->path) : 0;
}
