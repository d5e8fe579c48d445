/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/file_job_op.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "init/files/guest_file.h"
#include "init/files/dir_walk.h"
#include "base/buffered_writer.h"

static struct buffered_writer out;
static char path[FILE_JOB_PATH_SIZE];

static int put_entry(int dir, const char *name, size_t path_len, const struct stat *st)
{
	char target[AGENT_PATH_MAX];
	struct agent_entry e = { .path_len = (uint32_t)path_len };
	ssize_t n = 0;
	int r;

	guest_file_fill_stat(&e.st, st);
	if (S_ISLNK(st->st_mode)) {
		n = readlinkat(dir, name, target, sizeof(target));
		if (n < 0)
			n = 0;
	}
	e.st.target_len = (uint32_t)n;
	e.len = (uint32_t)(sizeof(e) + path_len + (size_t)n);
	r = buffered_writer_put(&out, &e, sizeof(e));
	if (r == 0)
		r = buffered_writer_put(&out, path, path_len);
	return r == 0 ? buffered_writer_put(&out, target, (size_t)n) : r;
}

static int list_dir(int dir, size_t path_len, uint32_t depth, unsigned level);

static int list_one(int dir, const char *name, size_t path_len, uint32_t depth, unsigned level)
{
	auto_close int sub = -1;
	size_t n = strlen(name);
	struct stat st;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno; /* removed since the names were read */
	if (path_len + n >= AGENT_PATH_MAX)
		return 0; /* too long for any request */
	memcpy(path + path_len, name, n + 1);
	r = put_entry(dir, name, path_len + n, &st);
	if (r < 0 || !S_ISDIR(st.st_mode) || depth <= 1 || level + 1 >= FILE_JOB_DEPTH_MAX)
		return r;
	sub = dir_walk_open(dir, name);
	if (sub < 0) /* a directory that the user cannot read is listed without content */
		return sub == -EACCES || sub == -ENOENT || sub == -ENOTDIR ? 0 : sub;
	path[path_len + n] = '/';
	return list_dir(sub, path_len + n + 1, depth - 1, level + 1);
}

static int list_dir(int dir, size_t path_len, uint32_t depth, unsigned level)
{
	auto_fini(dir_walk_free_names) struct dir_names names = { 0 };
	int r = dir_walk_names(&names, dir);

	for (size_t i = 0; i < names.n && r == 0; i++)
		r = list_one(dir, names.list[i], path_len, depth, level);
	return r;
}

int list_job_run(const struct file_job *j, struct err *err)
{
	auto_close int dir = dir_walk_root(j->path);
	int r;

	if (dir < 0)
		return err_sys(err, -dir, "%.160s", j->path);
	out.fd = FILE_JOB_FD;
	r = list_dir(dir, 0, j->m.depth ? j->m.depth : 1, 0);
	if (r == 0)
		r = buffered_writer_flush(&out);
	return r < 0 ? err_sys(err, -r, "%.160s", j->path) : 0;
}
