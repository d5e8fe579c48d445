/* SPDX-License-Identifier: Apache-2.0 */
#include "init/core/guest_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/auto.h"

int guest_path_openat(int dir, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
		.resolve = RESOLVE_NO_MAGICLINKS,
	};
	int fd;

	if (!(flags & O_PATH))
		how.flags |= O_NONBLOCK | O_NOCTTY;
	if (flags & O_CREAT)
		how.mode = mode;
	/* EAGAIN: a rename raced with "..". Retry, but not forever. */
	for (int tries = 0; tries < 16; tries++) {
		fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd < 0 ? -errno : fd;
}

const char guest_path_in_proc[] = "in /proc, which only commands can read";

const char *guest_path_kind(mode_t mode)
{
	static const char *const kinds[16] = {
		[S_IFREG >> 12] = "a regular file",  [S_IFDIR >> 12] = "a directory",
		[S_IFIFO >> 12] = "a FIFO",	     [S_IFSOCK >> 12] = "a socket",
		[S_IFLNK >> 12] = "a symbolic link", [S_IFCHR >> 12] = "a character device",
		[S_IFBLK >> 12] = "a block device",
	};
	const char *kind = kinds[(mode & S_IFMT) >> 12];

	return kind ? kind : "of unknown type";
}

/* ENXIO can mean a FIFO without a reader or a socket: find out which. */
static int explain(int dir, const char *path, int error, const char **ret_kind)
{
	auto_close int fd = guest_path_openat(dir, path, O_PATH, 0);
	struct stat st;

	if (error != ENXIO || fd < 0 || fstat(fd, &st) < 0)
		return -error;
	*ret_kind = guest_path_kind(st.st_mode);
	return -EINVAL;
}

int guest_path_open_file(int dir, const char *path, int flags, mode_t mode, const char **ret_kind)
{
	auto_close int fd = guest_path_openat(dir, path, flags, mode);
	struct statfs fs;
	struct stat st;
	int got;

	*ret_kind = NULL;
	if (fd < 0)
		return explain(dir, path, -fd, ret_kind);
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	/* In /proc the kernel lets this process read its own memory, also while it impersonates a
	 * user. */
	if (fs.f_type == PROC_SUPER_MAGIC)
		*ret_kind = guest_path_in_proc;
	else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		*ret_kind = guest_path_kind(st.st_mode);
	if (*ret_kind)
		return -EINVAL;
	got = fcntl(fd, F_GETFL);
	if (got < 0 || fcntl(fd, F_SETFL, got & ~O_NONBLOCK) < 0)
		return -errno;
	return steal_fd(&fd);
}
