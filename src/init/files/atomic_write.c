/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/atomic_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/auto.h"
#include "init/core/guest_path.h"
#include "init/core/passwd.h"
#include "init/files/parent_dir.h"

enum { LINKS_MAX = 16 };

struct temp {
	uint64_t token;
	int dir, fd;
	bool used, noreplace;
	bool can_sync; /* the directory is open for reading, not with O_PATH */
	uint8_t conn;
	struct cred cred;
	char name[NAME_MAX + 1];
	char temp_name[32];
};

static struct temp temps[INIT_TEMPS_MAX];

static struct temp *find_free(void)
{
	for (int i = 0; i < INIT_TEMPS_MAX; i++)
		if (!temps[i].used)
			return &temps[i];
	return NULL;
}

static struct temp *find_temp(uint8_t conn, uint64_t token)
{
	for (int i = 0; i < INIT_TEMPS_MAX; i++)
		if (temps[i].used && temps[i].token == token && temps[i].conn == conn)
			return &temps[i];
	return NULL;
}

/* Continues at the target of a link, as open() would. */
static int follow_link(struct parent_dir *w, const char *target, bool make)
{
	struct parent_dir next;
	int r = parent_dir_find(&next, w->dir, target, make);

	if (r < 0)
		return r;
	close(w->dir);
	*w = next;
	return 0;
}

/* Finds the file to replace, through links. *ret_mode: its mode, or 0 if it does not exist. */
static int find_target(struct parent_dir *w, int base, const char *path, const struct agent_file *m,
		       mode_t *ret_mode, const char **ret_kind)
{
	char target[AGENT_PATH_MAX];
	bool make = (m->flags & AGENT_PARENTS) != 0;
	int r = parent_dir_find(w, base, path, make);
	struct stat st;
	ssize_t n;

	*ret_mode = 0;
	for (int i = 0; r == 0 && i < LINKS_MAX; i++) {
		if (fstatat(w->dir, w->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? 0 : -errno;
		if (S_ISREG(st.st_mode))
			return *ret_mode = st.st_mode & 0777, 0;
		if (!S_ISLNK(st.st_mode) || (m->flags & AGENT_NOFOLLOW))
			return *ret_kind = guest_path_kind(st.st_mode), -EINVAL;
		n = readlinkat(w->dir, w->name, target, sizeof(target) - 1);
		if (n < 0)
			return -errno;
		target[n] = 0;
		r = follow_link(w, target, make);
	}
	return r < 0 ? r : -ELOOP;
}

/* A directory that the user can write but not read cannot be synced by itself. */
static int open_for_sync(struct temp *t, int dir)
{
	t->dir = guest_path_openat(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	t->can_sync = t->dir >= 0;
	if (t->dir == -EACCES)
		t->dir = guest_path_openat(dir, ".", O_PATH | O_DIRECTORY, 0);
	return t->dir < 0 ? t->dir : 0;
}

static int check_space(int fd, uint64_t want)
{
	struct statfs fs;

	if (!want || fstatfs(fd, &fs) < 0 || !fs.f_blocks)
		return 0;
	return want / (uint64_t)fs.f_bsize > fs.f_bavail ? -ENOSPC : 0;
}

/* Also removes the file, unless it has been renamed. */
static void end_temp(struct temp *t)
{
	if (t->used && t->temp_name[0]) {
		if (passwd_impersonate(&t->cred) == 0)
			unlinkat(t->dir, t->temp_name, 0);
		passwd_revert();
	}
	close_autop(&t->fd);
	close_autop(&t->dir);
	t->used = false;
}

static int create_temp(struct temp *t, mode_t mode)
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		return -EAGAIN;
	t->token = random[0] | 1;
	snprintf(t->temp_name, sizeof(t->temp_name), ".lodge-%016llx",
		 (unsigned long long)random[1]);
	t->fd = guest_path_openat(t->dir, t->temp_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
				  mode);
	if (t->fd < 0)
		return t->fd;
	return fcntl(t->fd, F_SETFL, 0) < 0 ? -errno : 0;
}

int atomic_write_open(uint8_t conn, const struct cred *cred, int base, const char *path,
		      const struct agent_file *m, const char **ret_kind,
		      struct guest_file_reply *ret)
{
	struct temp *t = find_free();
	auto_fini(parent_dir_fini) struct parent_dir w = { .dir = -1 };
	mode_t mode;
	int r;

	if (!t)
		return -EMFILE;
	r = find_target(&w, base, path, m, &mode, ret_kind);
	if (r < 0)
		return r;
	*t = (struct temp){ .conn = conn, .cred = *cred, .dir = -1, .fd = -1 };
	memcpy(t->name, w.name, sizeof(t->name));
	t->noreplace = (m->flags & AGENT_NOREPLACE) != 0;
	r = open_for_sync(t, w.dir);
	if (r < 0)
		return r;
	if (m->mode)
		mode = m->mode;
	r = create_temp(t, mode ? mode : 0644);
	if (r == 0)
		r = check_space(t->fd, m->limit);
	if (r == 0)
		ret->fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 0);
	if (r < 0 || ret->fd < 0) {
		r = r < 0 ? r : -errno;
		if (t->fd >= 0)
			unlinkat(t->dir, t->temp_name, 0);
		end_temp(t);
		return r;
	}
	t->used = true;
	ret->type = AGENT_FD;
	ret->token.token = t->token;
	return 0;
}

static int rename_synced(struct temp *t)
{
	int r;

	/* The engine has already synced what it wrote, so this does not block. */
	if (fsync(t->fd) < 0)
		return -errno;
	r = passwd_impersonate(&t->cred);
	if (r == 0)
		r = parent_dir_rename(t->dir, t->temp_name, t->dir, t->name, t->noreplace);
	passwd_revert();
	if (r < 0)
		return r;
	/* The file is in place; from here on only durability can fail. */
	t->temp_name[0] = 0;
	return (t->can_sync ? fsync(t->dir) : syncfs(t->fd)) < 0 ? -errno : 0;
}

int atomic_write_end(uint8_t conn, uint64_t token, bool commit, struct err *err)
{
	struct temp *t = find_temp(conn, token);
	int r;

	if (!t)
		return err_set(err, ERR_NOT_FOUND, "no such write: already committed or aborted");
	r = commit ? rename_synced(t) : 0;
	if (r < 0)
		err_sys(err, -r, "%.160s", t->name);
	end_temp(t);
	return r < 0 ? -1 : 0;
}

void atomic_write_forget_conn(uint8_t conn)
{
	for (int i = 0; i < INIT_TEMPS_MAX; i++)
		if (temps[i].used && temps[i].conn == conn)
			end_temp(&temps[i]);
}
