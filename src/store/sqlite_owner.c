/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "store/sqlite_open.h"

/* A lock besides SQLite's: that one reports only "busy", and is lost as soon as anything in this
 * process opens and closes the database file. */
enum { LOCK_TRIES = 100, LOCK_WAIT_US = 20000 };

/* True if the process recorded in the file is dead. */
static bool is_orphaned(int fd)
{
	char text[512];
	long pid;

	if (file_read_fd(fd, text, sizeof(text)) <= 0)
		return false;
	pid = strtol(text, NULL, 10);
	return pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

static int fail_in_use(const char *path, int fd, struct err *err)
{
	char text[512], *socket;
	long pid;

	if (file_read_fd(fd, text, sizeof(text)) < 0)
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	pid = strtol(text, &socket, 10);
	if (pid <= 0 ||
	    *socket != ' ') /* the owner holds the lock but has not written its pid yet */
		return err_set(err, ERR_CONFLICT, "%s is in use by another process", path);
	return err_set(err, ERR_CONFLICT, "%s is in use by process %ld (%s)", path, pid,
		       socket + 1);
}

/* An owner killed during fork and exec leaves the lock to its child for a moment. */
static int lock_file(int fd)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK || !is_orphaned(fd))
			return -errno;
		usleep(LOCK_WAIT_US);
	}
	return -EWOULDBLOCK;
}

int sqlite_owner_take(const char *path, const char *socket, int *ret, struct err *err)
{
	auto_close int fd = -1;
	auto_free char *name = NULL;
	int r;

	if (asprintf(&name, "%s.owner", path) < 0) {
		name = NULL;
		return err_sys(err, ENOMEM, "%s", path);
	}
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		err_sys(err, errno, "%s", name);
		err->code = ERR_UNAVAILABLE;
		return -1;
	}
	r = lock_file(fd);
	if (r < 0)
		return r == -EWOULDBLOCK ? fail_in_use(path, fd, err)
					 : err_sys(err, -r, "lock %s", name);
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%ld %s\n", (long)getpid(), socket) < 0)
		return err_sys(err, errno, "%s", name);
	*ret = steal_fd(&fd);
	return 0;
}
