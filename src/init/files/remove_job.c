/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/remove_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "init/files/dir_walk.h"
#include "init/files/parent_dir.h"

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

struct removal {
	int top;
	unsigned level;
	bool shallow; /* leaves what is below LEVELS */
};

static int remove_deepest(int dir, const char *name);

static int remove_one(int dir, const char *name, void *arg)
{
	struct removal *rm = arg;
	int r;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	if (rm->level >= LEVELS && rm->shallow)
		return 0;
	if (rm->level >= LEVELS) {
		r = move_to_top(dir, name, rm->top);
		/* An overlay does not rename directories of its lower layers. */
		return r == -EXDEV ? remove_deepest(dir, name) : r;
	}
	rm->level++;
	r = file_each_at(dir, name, remove_one, rm);
	rm->level--;
	if (r < 0 && r != -ENOENT && r != -ENOTDIR) /* these two: replaced meanwhile */
		return r;
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTEMPTY ||
	    errno == ENOTDIR)
		return 0;
	return -errno;
}

/* Copies the name of a directory to `arg`. */
static int stop_at_dir(int dir, const char *name, void *arg)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	snprintf(arg, NAME_MAX + 1, "%s", name);
	return 1;
}

/* Goes down to a directory without others and removes it with up to LEVELS above it. Few of them
 * are open at the same time; the next pass of remove_job_contents() continues. */
static int remove_deepest(int dir, const char *name)
{
	auto_close int at = dir_walk_open(dir, name);
	auto_close int mark = dir_walk_open(dir, name), from = dir_walk_open(dir, name);
	char sub[NAME_MAX + 1];

	for (unsigned n = 1; at >= 0 && file_each_in(at, stop_at_dir, sub) == 1; n++) {
		int next = dir_walk_open(at, sub);

		if (n % (LEVELS / 2) == 0) {
			close_autop(&from);
			from = steal_fd(&mark);
			mark = steal_fd(&at);
		}
		close_autop(&at);
		at = next;
	}
	if (at < 0 || from < 0)
		return at == -ENOENT || at == -ENOTDIR ? 0 : at; /* replaced meanwhile */
	moves++;
	return file_each_in(from, remove_one, &(struct removal){ .top = from, .shallow = true });
}

static int stop_at_first(int dir, const char *name, void *arg)
{
	(void)dir, (void)name, (void)arg;
	return 1;
}

int remove_job_contents(int dir)
{
	unsigned before;
	int r = 0;

	/* Repeat while passes move directories to the top, but not forever against a process that
	 * keeps adding files. */
	for (int pass = 0; pass < PASSES; pass += before == moves) {
		before = moves;
		r = file_each_in(dir, remove_one, &(struct removal){ .top = dir });
		/* A directory that changes while it is read may need another pass, and directories
		 * that were moved to the top are found here. */
		if (r < 0 || file_each_in(dir, stop_at_first, NULL) != 1)
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
	auto_fini(parent_dir_fini) struct parent_dir w = { .dir = -1 };
	int r = parent_dir_find(&w, AT_FDCWD, j->path, false);

	if (r == -ENOENT && j->path[0])
		return 0;
	if (r == 0)
		r = remove_job_tree(w.dir, w.name);
	return r < 0 ? err_sys(err, -r, "%.160s", j->path) : 0;
}
