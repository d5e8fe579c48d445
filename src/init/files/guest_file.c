/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/guest_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/auto.h"
#include "init/core/guest_path.h"
#include "init/files/atomic_write.h"
#include "init/core/passwd.h"
#include "init/files/parent_dir.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

enum { PROC_ROOT = 1 }; /* inode of /proc itself */

struct file_op {
	struct agent_file m;
	struct passwd_user user;
	int base; /* start of relative paths */
	const char *path, *path2;
	const char *subject, *kind; /* for an error: its path; if that is of a wrong kind, which */
	uint8_t conn;
	struct guest_file_reply *ret;
};

static int fail(struct err *err, int error, const char *path, const char *kind)
{
	if (error == EINVAL && kind)
		return err_set(err, ERR_INVALID, "%.160s is %s", path, kind);
	if (error == ELOOP)
		return err_set(err, ERR_INVALID, "%.160s: symbolic link not followed", path);
	return err_sys(err, error, "%.160s", path);
}

static int op_open(struct file_op *o)
{
	const uint32_t f = o->m.flags;
	int flags, fd;

	flags = f & AGENT_WRITE ? (f & AGENT_READ ? O_RDWR : O_WRONLY) : O_RDONLY;
	flags |= (f & AGENT_CREATE ? O_CREAT : 0) | (f & AGENT_TRUNC ? O_TRUNC : 0) |
		 (f & AGENT_APPEND ? O_APPEND : 0) | (f & AGENT_EXCL ? O_EXCL : 0) |
		 (f & AGENT_DIR ? O_DIRECTORY : 0) | (f & AGENT_NOFOLLOW ? O_NOFOLLOW : 0);
	if ((f & AGENT_PARENTS) && (f & AGENT_CREATE)) {
		auto_fini(parent_dir_fini) struct parent_dir w = { .dir = -1 };
		int r = parent_dir_find(&w, o->base, o->path, true);

		if (r < 0)
			return r;
	}
	fd = guest_path_open_file(o->base, o->path, flags, o->m.mode ? o->m.mode : 0644, &o->kind);
	if (fd < 0)
		return fd;
	o->ret->type = AGENT_FD;
	o->ret->fd = fd;
	o->ret->token.token = 0;
	return 0;
}

static int64_t nanoseconds(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void guest_file_fill_stat(struct agent_stat *to, const struct stat *st)
{
	*to = (struct agent_stat){
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size = (uint64_t)st->st_size,
		.ino = st->st_ino,
		.mtime_ns = nanoseconds(st->st_mtim),
		.ctime_ns = nanoseconds(st->st_ctim),
	};
}

/* Links in /proc reveal private details of lodge-init. */
static bool in_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

static int op_stat(struct file_op *o)
{
	const bool nofollow = (o->m.flags & AGENT_NOFOLLOW) != 0;
	auto_close int fd =
		guest_path_openat(o->base, o->path, O_PATH | (nofollow ? O_NOFOLLOW : 0), 0);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* The kernel gives this process access to its own entries in /proc. */
	if (in_proc(fd) && st.st_ino != PROC_ROOT)
		return o->kind = guest_path_in_proc, -EINVAL;
	guest_file_fill_stat(&o->ret->st, &st);
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(fd, "", o->ret->target, sizeof(o->ret->target));
		if (n < 0)
			return -errno;
		o->ret->st.target_len = (uint32_t)n;
	}
	o->ret->type = AGENT_STATR;
	return 0;
}

static int op_mkdir(struct file_op *o)
{
	const bool parents = (o->m.flags & AGENT_PARENTS) != 0;
	auto_fini(parent_dir_fini) struct parent_dir w = { .dir = -1 };
	int r = parent_dir_find(&w, o->base, o->path, parents);
	struct stat st;

	if (r < 0)
		return r;
	if (mkdirat(w.dir, w.name, o->m.mode ? o->m.mode : 0755) == 0)
		return 0;
	if (errno != EEXIST || !parents)
		return -errno;
	if (fstatat(w.dir, w.name, &st, 0) < 0)
		return -EEXIST;
	return S_ISDIR(st.st_mode) ? 0 : (o->kind = guest_path_kind(st.st_mode), -EINVAL);
}

static int op_rename(struct file_op *o)
{
	auto_fini(parent_dir_fini) struct parent_dir from = { .dir = -1 }, to = { .dir = -1 };
	int r = parent_dir_find(&from, o->base, o->path, false);

	if (r < 0)
		return r;
	o->subject = o->path2;
	r = parent_dir_find(&to, o->base, o->path2, (o->m.flags & AGENT_PARENTS) != 0);
	if (r < 0)
		return r;
	r = parent_dir_rename(from.dir, from.name, to.dir, to.name, o->m.flags & AGENT_NOREPLACE);
	if (r == -ENOENT)
		o->subject = o->path;
	return r;
}

static int op_remove(struct file_op *o)
{
	auto_fini(parent_dir_fini) struct parent_dir w = { .dir = -1 };
	int r = parent_dir_find(&w, o->base, o->path, false);

	if (r < 0)
		return r;
	if (unlinkat(w.dir, w.name, 0) == 0)
		return 0;
	if ((errno == EISDIR || errno == EPERM) && unlinkat(w.dir, w.name, AT_REMOVEDIR) == 0)
		return 0;
	return -errno;
}

static int op_symlink(struct file_op *o)
{
	const char *target = o->path, *path = o->path2;
	auto_fini(parent_dir_fini) struct parent_dir w = { .dir = -1 };
	int r = parent_dir_find(&w, o->base, path, (o->m.flags & AGENT_PARENTS) != 0);

	o->subject = path;
	return r < 0 ? r : symlinkat(target, w.dir, w.name) < 0 ? -errno : 0;
}

/* By descriptor, so that it changes the file that was resolved. */
static int op_chmod(struct file_op *o)
{
	auto_close int fd = guest_path_openat(o->base, o->path, O_PATH, 0);
	char self[32];

	if (fd < 0)
		return fd;
	if (in_proc(fd))
		return -EPERM;
	if (syscall(SYS_fchmodat2, fd, "", o->m.mode, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOSYS && errno != EPERM)
		return -errno;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return chmod(self, o->m.mode) < 0 ? -errno : 0;
}

static int op_temp(struct file_op *o)
{
	return atomic_write_open(o->conn, &o->user.cred, o->base, o->path, &o->m, &o->kind, o->ret);
}

typedef int file_op_fn(struct file_op *o); /* 0 or -errno */

/* One entry per row of AGENT_FILE_REQUESTS: a row without its op_*() does not compile. */
static file_op_fn *const ops[] = {
#define OP(name, fn, ...) [AGENT_##name] = op_##fn,
	AGENT_FILE_REQUESTS(OP)
#undef OP
};

static bool needs_home(const struct file_op *o, uint32_t type)
{
	if (type == AGENT_SYMLINK)
		return o->path2[0] != '/';
	return o->path[0] != '/' || (o->path2 && o->path2[0] != '/');
}

static int run_as_user(uint32_t type, struct file_op *o, struct err *err)
{
	auto_close int home = -1;
	int r;

	o->base = AT_FDCWD;
	o->subject = o->path;
	if (needs_home(o, type)) {
		home = guest_path_openat(AT_FDCWD, o->user.home, O_PATH | O_DIRECTORY, 0);
		if (home < 0)
			return fail(err, -home, o->user.home, NULL);
		o->base = home;
	}
	r = ops[type](o);
	return r < 0 ? fail(err, -r, o->subject, o->kind) : 0;
}

int guest_file_request(uint8_t conn, uint32_t type, const void *msg, size_t len,
		       struct guest_file_reply *ret, struct err *err)
{
	struct file_op o = { .conn = conn, .ret = ret };
	int r;

	ret->type = AGENT_OK;
	memcpy(&o.m, (const char *)msg + sizeof(struct agent_hdr), sizeof(o.m));
	o.path = agent_msg_string(msg, len, 1);
	o.path2 = agent_msg_string(msg, len, 2);
	if (passwd_resolve(agent_msg_string(msg, len, 0), &o.user, err) < 0)
		return -1;
	r = passwd_impersonate(&o.user.cred);
	if (r < 0)
		return err_sys(err, -r, "switch to the user");
	r = run_as_user(type, &o, err);
	passwd_revert();
	return r;
}
