/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/dir_walk.h"

#include <errno.h>
#include <fcntl.h>

#include "init/core/guest_path.h"

int dir_walk_root(const char *path)
{
	return guest_path_openat(AT_FDCWD, *path ? path : ".", O_RDONLY | O_DIRECTORY, 0);
}

int dir_walk_open(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}
