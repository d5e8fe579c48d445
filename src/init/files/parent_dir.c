/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/parent_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "init/core/init_state.h"
#include "init/core/guest_path.h"

static int open_or_make_dir(int dir, const char *name)
{
	int fd = guest_path_openat(dir, name, O_PATH | O_DIRECTORY, 0);

	if (fd != -ENOENT)
		return fd;
	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return guest_path_openat(dir, name, O_PATH | O_DIRECTORY, 0);
}

static int make_dirs(int base, const char *path)
{
	auto_close int dir =
		guest_path_openat(base, path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY, 0);
	char name[NAME_MAX + 1];

	while (dir >= 0) {
		size_t n;
		int next;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (!n)
			break;
		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, n);
		name[n] = 0;
		path += n;
		next = open_or_make_dir(dir, name);
		close(dir);
		dir = next;
	}
	return steal_fd(&dir);
}

int parent_dir_open(int base, const char *path, bool make)
{
	int fd = guest_path_openat(base, *path ? path : ".", O_PATH | O_DIRECTORY, 0);

	return fd == -ENOENT && make ? make_dirs(base, path) : fd;
}

void parent_dir_fini(struct parent_dir *w)
{
	close_autop(&w->dir);
}

int parent_dir_find(struct parent_dir *w, int base, const char *path, bool make)
{
	size_t end = strlen(path), start, n;
	char dir[AGENT_PATH_MAX];

	while (end > 1 && path[end - 1] == '/')
		end--;
	for (start = end; start > 0 && path[start - 1] != '/';)
		start--;
	n = end - start;
	if (n > NAME_MAX || start >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(w->name, path + start, n);
	w->name[n] = 0;
	if (!n)
		return *path ? -EISDIR : -ENOENT;
	if (!strcmp(w->name, ".") || !strcmp(w->name, ".."))
		return -EINVAL;
	memcpy(dir, path, start);
	dir[start] = 0;
	w->dir = parent_dir_open(base, dir, make);
	return w->dir < 0 ? w->dir : 0;
}

int parent_dir_rename(int from_dir, const char *from, int to_dir, const char *to, bool noreplace)
{
	long r = syscall(SYS_renameat2, from_dir, from, to_dir, to,
			 noreplace ? RENAME_NOREPLACE : 0);

	return r < 0 ? -errno : 0;
}
