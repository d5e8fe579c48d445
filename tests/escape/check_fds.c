/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that a command inherits. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { HIGHEST = 65536 };

static void describe(int fd, char *buf, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, buf, size - 1);
	buf[n < 0 ? 0 : n] = '\0';
}

static int only_three(const struct check *c)
{
	char what[200];

	(void)c;
	for (int fd = 3; fd < HIGHEST; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		describe(fd, what, sizeof(what));
		return broken("descriptor %d is open: %s", fd, what);
	}
	return held();
}

/* A terminal must be of the sandbox's own /dev/pts. */
static bool is_fine(const struct stat *st)
{
	struct stat pts;
	char path[64];

	if (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode))
		return true;
	if (!S_ISCHR(st->st_mode))
		return false;
	if (st->st_rdev == makedev(1, 3))
		return true;
	snprintf(path, sizeof(path), "/dev/pts/%u", minor(st->st_rdev));
	return major(st->st_rdev) >= 136 && major(st->st_rdev) <= 143 && stat(path, &pts) == 0 &&
	       pts.st_dev == st->st_dev && pts.st_ino == st->st_ino;
}

static int kinds(const struct check *c)
{
	char what[200];
	struct stat st;

	(void)c;
	for (int fd = 0; fd < HIGHEST; fd++) {
		if (fstat(fd, &st) < 0)
			continue;
		describe(fd, what, sizeof(what));
		if (fd < 3 && !is_fine(&st))
			return broken("descriptor %d is %s", fd, what);
		if (fd >= 3 && !S_ISFIFO(st.st_mode))
			return broken("descriptor %d is %s", fd, what);
	}
	return held();
}

const struct check checks_fds[] = {
	{ "fds-only-three", "descriptors 0, 1 and 2 are open and no other", only_three, BOTH,
	  "closefds" },
	{ "fds-kinds", "every descriptor is a pipe, socket, own terminal or null", kinds, BOTH,
	  "closefds" },
	{ 0 },
};
