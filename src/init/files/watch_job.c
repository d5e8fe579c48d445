/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/file_job_op.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/auto.h"
#include "init/files/dir_walk.h"
#include "base/buffered_writer.h"

enum { BUCKETS = 4096, CHECK_MS = 1000 };

static const uint32_t mask = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
			     IN_ATTRIB | IN_DELETE_SELF | IN_ONLYDIR;

/* A watched directory, by its inotify watch descriptor. */
struct watched {
	struct watched *next;
	int wd;
	char path[]; /* relative, "" for the root, else ends in '/' */
};

static struct watched *table[BUCKETS];
static struct buffered_writer out;
static char path[FILE_JOB_PATH_SIZE];
static int queue = -1, root = -1, root_wd = -1;
static bool recursive;

static struct watched **find_watch(int wd)
{
	struct watched **w = &table[(unsigned)wd % BUCKETS];

	while (*w && (*w)->wd != wd)
		w = &(*w)->next;
	return w;
}

static void forget_watch(int wd)
{
	struct watched **w = find_watch(wd), *gone = *w;

	if (gone) {
		*w = gone->next;
		free(gone);
	}
}

static int add_to_table(int wd, const char *at, size_t len)
{
	struct watched *w;

	forget_watch(wd); /* the directory was renamed */
	w = malloc(sizeof(*w) + len + 1);
	if (!w)
		return -ENOMEM;
	*w = (struct watched){ .wd = wd };
	memcpy(w->path, at, len);
	w->path[len] = 0;
	*find_watch(wd) = w;
	return 0;
}

static int report_change(uint32_t kind, bool is_dir, size_t path_len)
{
	struct agent_change c = { .len = (uint32_t)(sizeof(c) + path_len),
				  .path_len = (uint32_t)path_len,
				  .kind = kind,
				  .is_dir = is_dir };
	int r;

	if (path_len >= AGENT_PATH_MAX)
		return 0; /* too long for any request */
	r = buffered_writer_put(&out, &c, sizeof(c));
	return r < 0 ? r : buffered_writer_put(&out, path, path_len);
}

/* By the working directory, because the path may lead elsewhere by now. */
static int add_watch(int dir)
{
	int wd;

	if (fchdir(dir) < 0)
		return -errno;
	wd = inotify_add_watch(queue, ".", mask);
	/* ENOSPC would be read as a full disk */
	return wd >= 0 ? wd : errno == ENOSPC ? -EMFILE : -errno;
}

/* Watches `dir`, whose path of `len` bytes is in `path`, and its subdirectories. Reports the
 * content of a new directory as created, because files may be older than its watch. */
static int watch_tree(int dir, size_t len, unsigned level, bool report)
{
	auto_fini(dir_walk_free_names) struct dir_names names = { 0 };
	int wd = add_watch(dir), r;

	if (wd < 0)
		return wd == -EACCES || wd == -ENOENT ? 0 : wd;
	r = add_to_table(wd, path, len);
	if (len == 0)
		root_wd = wd;
	if (r < 0 || !recursive || level >= FILE_JOB_DEPTH_MAX)
		return r;
	r = dir_walk_names(&names, dir);
	if (r < 0)
		return r == -EACCES ? 0 : r;
	for (size_t i = 0; i < names.n && r == 0; i++) {
		auto_close int sub = dir_walk_open(dir, names.list[i]);
		size_t n = strlen(names.list[i]);

		if (len + n + 2 >= sizeof(path))
			continue;
		memcpy(path + len, names.list[i], n);
		if (report)
			r = report_change(AGENT_CHANGE_CREATE, sub >= 0, len + n);
		path[len + n] = '/';
		if (r == 0 && sub >= 0)
			r = watch_tree(sub, len + n + 1, level + 1, report);
	}
	return r;
}

/* Drops the watches below a directory that was moved away. */
static void unwatch_below(size_t len)
{
	path[len++] = '/';
	for (size_t b = 0; b < BUCKETS; b++) {
		for (struct watched *w = table[b], *next; w; w = next) {
			next = w->next;
			if (strncmp(w->path, path, len) != 0)
				continue;
			inotify_rm_watch(queue, w->wd);
			forget_watch(w->wd);
		}
	}
}

static int watch_new_dir(size_t len)
{
	auto_close int dir = -1;
	unsigned level = 1;

	path[len] = 0;
	dir = dir_walk_open(root, path);
	for (size_t i = 0; i < len; i++)
		level += path[i] == '/';
	path[len] = '/';
	return dir < 0 ? 0 : watch_tree(dir, len + 1, level, true);
}

static int handle_event(const struct inotify_event *e)
{
	struct watched *w = *find_watch(e->wd);
	bool is_dir = (e->mask & IN_ISDIR) != 0;
	size_t n, len;
	int r = 0;

	if (e->mask & IN_Q_OVERFLOW)
		return report_change(AGENT_CHANGE_LOST, false, 0);
	if (e->mask & IN_IGNORED)
		return forget_watch(e->wd), 0;
	if (!w)
		return 0;
	if (e->mask & IN_DELETE_SELF)
		return e->wd == root_wd ? report_change(AGENT_CHANGE_REMOVE, true, 0) : 0;
	n = e->len ? strlen(e->name) : 0;
	len = strlen(w->path);
	if (!n || len + n + 2 >= sizeof(path))
		return 0;
	memcpy(path, w->path, len);
	memcpy(path + len, e->name, n);
	len += n;
	if (e->mask & (IN_CREATE | IN_MOVED_TO))
		r = report_change(AGENT_CHANGE_CREATE, is_dir, len);
	else if (e->mask & IN_MODIFY)
		r = report_change(AGENT_CHANGE_WRITE, is_dir, len);
	else if (e->mask & IN_DELETE)
		r = report_change(AGENT_CHANGE_REMOVE, is_dir, len);
	else if (e->mask & IN_MOVED_FROM)
		r = report_change(AGENT_CHANGE_RENAME, is_dir, len);
	else if (e->mask & IN_ATTRIB)
		r = report_change(AGENT_CHANGE_CHMOD, is_dir, len);
	if (r == 0 && recursive && is_dir && (e->mask & IN_MOVED_FROM))
		unwatch_below(len);
	if (r == 0 && recursive && is_dir && (e->mask & (IN_CREATE | IN_MOVED_TO)))
		r = watch_new_dir(len);
	return r;
}

static int read_events(void)
{
	_Alignas(struct inotify_event) char buf[16 * 1024];
	ssize_t n = read(queue, buf, sizeof(buf));
	int r = 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (ssize_t at = 0; at < n && r == 0;) {
		const struct inotify_event *e = (const void *)(buf + at);

		r = handle_event(e);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	return r < 0 ? r : buffered_writer_flush(&out);
}

/* inotify reports the removal only when no descriptor is left, and this process holds one. */
static bool root_is_gone(void)
{
	char at[PATH_MAX];

	return fchdir(root) == 0 && !getcwd(at, sizeof(at)) && errno == ENOENT;
}

static int watch_loop(void)
{
	struct pollfd p[2] = { { .fd = queue, .events = POLLIN }, { .fd = FILE_JOB_FD } };
	int r = 0, n;

	while (r == 0 && root_wd >= 0) {
		n = poll(p, 2, CHECK_MS);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && root_is_gone()) {
			r = report_change(AGENT_CHANGE_REMOVE, true, 0);
			return r < 0 ? r : buffered_writer_flush(&out);
		}
		/* The reader closed the pipe: the normal end of a watch. */
		if (p[1].revents & (POLLERR | POLLHUP | POLLNVAL))
			return 0;
		if (p[0].revents & POLLIN)
			r = read_events();
		if (!*find_watch(root_wd))
			root_wd = -1;
	}
	return r;
}

int watch_job_run(const struct file_job *j, struct err *err)
{
	int r;

	recursive = (j->m.flags & AGENT_JOB_RECURSIVE) != 0;
	out.fd = FILE_JOB_FD;
	root = dir_walk_root(j->path);
	if (root < 0)
		return err_sys(err, -root, "%.160s", j->path);
	queue = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (queue < 0)
		return err_sys(err, errno, "watch");
	r = watch_tree(root, 0, 0, false);
	if (r == 0 && root_wd < 0)
		r = -EACCES;
	if (r == 0)
		r = report_change(AGENT_CHANGE_READY, true, 0);
	if (r == 0)
		r = buffered_writer_flush(&out);
	if (r == 0)
		r = watch_loop();
	return r < 0 ? err_sys(err, -r, "%.160s", j->path) : 0;
}
