/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"

enum { TREE_DEPTH_MAX = 128 };

int file_printf_at(int dir, const char *name, const char *fmt, ...)
{
	auto_close int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	char buf[256];
	va_list ap;
	int n;

	if (fd < 0)
		return -errno;
	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(buf))
		return -EINVAL;
	return write(fd, buf, (size_t)n) < 0 ? -errno : 0;
}

ssize_t file_read_fd(int fd, char *buf, size_t size)
{
	size_t len = 0;

	while (len + 1 < size) {
		ssize_t n = pread(fd, buf + len, size - 1 - len, (off_t)len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	buf[len] = 0;
	return (ssize_t)len;
}

ssize_t file_read_at(int dir, const char *name, char *buf, size_t size)
{
	auto_close int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : file_read_fd(fd, buf, size);
}

static int number_at(const char *text, uint64_t *ret)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (end == text || errno)
		return -EINVAL;
	*ret = v;
	return 0;
}

int file_number_in(const char *text, const char *key, uint64_t *ret)
{
	size_t n = strlen(key);
	const char *line = text;

	while (line) {
		if (strncmp(line, key, n) == 0 && (!n || line[n] == ' '))
			return number_at(line + n, ret);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return -ENOENT;
}

int file_number_at(int dir, const char *name, const char *key, uint64_t *ret)
{
	char buf[4096];
	ssize_t n = file_read_at(dir, name, buf, sizeof(buf));

	return n < 0 ? (int)n : file_number_in(buf, key, ret);
}

int file_replace_at(int dir, const char *name, const char *text, size_t len)
{
	char temp[300];
	int r = 0;

	if ((size_t)snprintf(temp, sizeof(temp), ".%s.new", name) >= sizeof(temp))
		return -ENAMETOOLONG;
	{
		auto_close int fd = openat(
			dir, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0)
			return -errno;
		if (write(fd, text, len) != (ssize_t)len)
			r = errno ? -errno : -EIO;
	}
	if (r == 0 && renameat(dir, temp, dir, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, temp, 0);
	return r;
}

/* Takes ownership of fd; if it is negative, errno says why. */
static int each_entry(int fd, file_each_fn *fn, void *arg)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!d) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0) {
		errno = 0;
		/* No other thread uses this stream. NOLINTNEXTLINE(concurrency-mt-unsafe) */
		e = readdir(d);
		if (!e)
			break;
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = fn(fd, e->d_name, arg);
	}
	if (r == 0 && errno)
		r = -errno;
	closedir(d);
	return r;
}

int file_each_at(int dir, const char *name, file_each_fn *fn, void *arg)
{
	return each_entry(openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), fn,
			  arg);
}

int file_each_in(int dir, file_each_fn *fn, void *arg)
{
	int fd = fcntl(dir, F_DUPFD_CLOEXEC, 0);

	if (fd >= 0)
		lseek(fd, 0, SEEK_SET); /* the position is shared with `dir` */
	return each_entry(fd, fn, arg);
}

/* A guest can nest directories deeper than the limit of open descriptors. Directories that are too
 * deep are moved up beside the tree and removed in a later round. */
struct removal {
	int top;
	dev_t dev;
	unsigned depth, hoisted;
	char deep[256]; /* directory beside the tree */
};

static int move_up(struct removal *rm, int dir, const char *name)
{
	char up[300];

	if (mkdirat(rm->top, rm->deep, 0700) < 0 && errno != EEXIST)
		return -errno;
	do /* An interrupted removal may have left some of these names. */
		snprintf(up, sizeof(up), "%s/%u", rm->deep, rm->hoisted++);
	while (faccessat(rm->top, up, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	return renameat(dir, name, rm->top, up) < 0 ? -errno : 0;
}

static int remove_entry(int dir, const char *name, void *arg)
{
	struct removal *rm = arg;
	struct stat st;
	int r;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -EPERM;
	if (st.st_dev != rm->dev)
		return -EXDEV;
	if (rm->depth >= TREE_DEPTH_MAX)
		return move_up(rm, dir, name);
	rm->depth++;
	r = file_each_at(dir, name, remove_entry, rm);
	rm->depth--;
	if (r < 0)
		return r;
	return unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int file_remove_tree_at(int dir, const char *name)
{
	struct removal rm = { .top = dir };
	struct stat st;
	int r = 0;

	snprintf(rm.deep, sizeof(rm.deep), ".deep.%.200s", name); /* no id begins like this */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		rm.dev = st.st_dev;
		r = remove_entry(dir, name, &rm);
	} else if (errno != ENOENT) {
		return -errno;
	}
	/* also removes what an interrupted removal moved there */
	while (r == 0 && fstatat(dir, rm.deep, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		rm.dev = st.st_dev;
		r = file_each_at(dir, rm.deep, remove_entry, &rm);
		if (r == 0 && unlinkat(dir, rm.deep, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY)
			r = -errno;
	}
	return r;
}

int file_sync_dir(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int file_write_all(int fd, const void *bytes, size_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	const char *at = bytes;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n >= 0) {
			at += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			poll(&p, 1, -1);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}
