/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/file_job_op.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/pax.h"
#include "init/files/dir_walk.h"

enum { LINK_BUCKETS = 1024 };

/* The first name of a file with several. */
struct seen {
	struct seen *next;
	dev_t dev;
	ino_t ino;
	char path[];
};

static struct pax out;
static char path[FILE_JOB_PATH_SIZE];
static struct seen *seen[LINK_BUCKETS];

/* Only user.* attributes, which the user can set. */
static int add_xattrs(int fd)
{
	char names[4096], value[65536], key[300];
	ssize_t len = flistxattr(fd, names, sizeof(names)), n;
	int r = 0;

	for (char *at = names; r == 0 && at < names + len; at += strlen(at) + 1) {
		if (strncmp(at, "user.", 5) != 0)
			continue;
		n = fgetxattr(fd, at, value, sizeof(value));
		if (n < 0)
			continue;
		snprintf(key, sizeof(key), PAX_XATTR "%s", at);
		r = pax_record(&out, key, value, (size_t)n);
	}
	return r == -E2BIG ? -ENAMETOOLONG : r;
}

static int put_headers(const struct stat *st, char type, uint64_t size, const char *link)
{
	int r = pax_entry(&out, &(struct pax_entry){ path, link, type, size, st });

	return r == -E2BIG ? -ENAMETOOLONG : r;
}

/* Writes exactly as many bytes as the header announced, even if the file changes meanwhile. */
static int put_content(int fd, uint64_t size)
{
	static char buf[64 * 1024];
	uint64_t left = size;
	int r = 0;

	while (left && r == 0) {
		size_t want = left < sizeof(buf) ? (size_t)left : sizeof(buf);
		ssize_t n = read(fd, buf, want);

		if (n < 0)
			return -errno;
		if (n == 0) {
			memset(buf, 0, want);
			n = (ssize_t)want;
		}
		r = pax_bytes(&out, buf, (size_t)n);
		left -= (uint64_t)n;
	}
	return r < 0 ? r : pax_pad(&out, size);
}

/* The first name of a file with several, or NULL when this is the first. */
static const char *seen_before(const struct stat *st)
{
	struct seen **bucket = &seen[(st->st_ino ^ st->st_dev) % LINK_BUCKETS], *s;
	size_t n = strlen(path) + 1;

	for (s = *bucket; s; s = s->next) {
		if (s->ino == st->st_ino && s->dev == st->st_dev)
			return s->path;
	}
	s = malloc(sizeof(*s) + n);
	if (s) { /* without memory the content is written twice */
		*s = (struct seen){ *bucket, st->st_dev, st->st_ino };
		memcpy(s->path, path, n);
		*bucket = s;
	}
	return NULL;
}

static int put_file(int dir, const char *name)
{
	auto_close int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	const char *first = NULL;
	struct stat st;
	int r;

	/* skip what is no longer a regular file */
	if (fd < 0)
		return errno == ELOOP || errno == ENXIO || errno == ESRCH ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_nlink > 1)
		first = seen_before(&st);
	if (first)
		return put_headers(&st, '1', 0, first);
	r = add_xattrs(fd);
	if (r == 0)
		r = put_headers(&st, '0', (uint64_t)st.st_size, "");
	return r < 0 ? r : put_content(fd, (uint64_t)st.st_size);
}

static int put_symlink(int dir, const char *name, const struct stat *st)
{
	char target[AGENT_PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return errno == EINVAL ? 0 : -errno; /* replaced meanwhile */
	target[n] = 0;
	return put_headers(st, '2', 0, target);
}

static int put_dir(int dir, size_t path_len, unsigned level, char *ret_where);

static int put_subdir(int dir, const char *name, const struct stat *st, size_t path_len,
		      unsigned level, char *ret_where)
{
	auto_close int sub = dir_walk_open(dir, name);
	int r;

	if (sub < 0)
		return sub == -ENOTDIR ? 0 : sub; /* replaced meanwhile */
	if (level + 1 >= FILE_JOB_DEPTH_MAX)
		return -ENAMETOOLONG;
	r = add_xattrs(sub);
	path[path_len] = '/';
	path[path_len + 1] = 0;
	if (r == 0)
		r = put_headers(st, '5', 0, "");
	return r < 0 ? r : put_dir(sub, path_len + 1, level + 1, ret_where);
}

/* Skips sockets, FIFOs and devices, which have no meaning outside the sandbox. */
static int put_one(int dir, const char *name, size_t path_len, unsigned level, char *ret_where)
{
	size_t n = strlen(name);
	struct stat st;
	int r = 0;

	if (path_len + n + 2 >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path + path_len, name, n + 1);
	out.extra_len = 0;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISREG(st.st_mode))
		r = put_file(dir, name);
	else if (S_ISLNK(st.st_mode))
		r = put_symlink(dir, name, &st);
	else if (S_ISDIR(st.st_mode))
		r = put_subdir(dir, name, &st, path_len + n, level, ret_where);
	if (r == -ENOENT)
		return 0;
	if (r < 0 && !*ret_where)
		snprintf(ret_where, 160, "%s", path);
	return r;
}

static int put_dir(int dir, size_t path_len, unsigned level, char *ret_where)
{
	auto_fini(dir_walk_free_names) struct dir_names names = { 0 };
	int r = dir_walk_names(&names, dir);

	for (size_t i = 0; i < names.n && r == 0; i++)
		r = put_one(dir, names.list[i], path_len, level, ret_where);
	return r;
}

int tar_write_run(const struct file_job *j, struct err *err)
{
	auto_close int dir = dir_walk_root(j->path);
	char where[160] = "";
	int r;

	if (dir < 0)
		return err_sys(err, -dir, "%.160s", j->path);
	out.out.fd = FILE_JOB_FD;
	r = put_dir(dir, 0, 0, where);
	if (r == 0)
		r = pax_end(&out);
	return r < 0 ? err_sys(err, -r, "%s", where[0] ? where : j->path) : 0;
}
