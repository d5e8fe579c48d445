/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/tar_child.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/file_io.h"
#include "base/vec.h"
#include "cli/core/cleanup.h"
#include "cli/core/human.h"

enum {
	TAR_CHANGED = 1, /* its exit status if a file changed while it was read */
	DEPTH_MAX = 200,
};

static const char pack_words[] = "tar --create --file=- --format=pax --sparse-version=1.0";
/* Owners by number, nothing that is mounted, and nothing that every start creates. */
static const char pack_root_words[] =
	"tar --create --file=- --format=pax --pax-option=delete=atime,delete=ctime --numeric-owner "
	"--one-file-system --warning=no-file-ignored --exclude=./dev/* --exclude=./proc/* "
	"--exclude=./sys/*";
/* No --absolute-names: tar removes leading slashes, and refuses names with "..". With
 * --no-same-permissions the umask holds. */
static const char unpack_words[] =
	"tar --extract --file=- --no-same-owner --no-same-permissions --delay-directory-restore "
	"--no-acls --no-selinux --no-xattrs --warning=no-timestamp";

/* ---- its words ------------------------------------------------------------------------------- */

struct words {
	char **items;
	size_t count;
};

static void words_fini(struct words *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->items[i]);
	free((void *)w->items);
}

static int add_word(struct words *w, const char *option, size_t len, const char *value)
{
	char **word = vec_push(&w->items, &w->count, SIZE_MAX);

	if (!word || asprintf(word, "%.*s%s", (int)len, option, value) >= 0)
		return word ? 0 : -1;
	*word = NULL;
	return -1;
}

/* Words that spaces separate. */
static int add_words(struct words *w, const char *text)
{
	for (size_t n; *text; text += n + (text[n] == ' ')) {
		n = strcspn(text, " ");
		if (add_word(w, text, n, "") < 0)
			return -1;
	}
	return 0;
}

/* NULL: it can be copied. */
static const char *kind_of(mode_t mode)
{
	return S_ISFIFO(mode)			? "a pipe"
	       : S_ISSOCK(mode)			? "a socket"
	       : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
						: NULL;
}

/* Exact names from the top, so that no other file is excluded. */
static int exclude(struct words *w, const char *name, const char *path, const char *kind)
{
	static const char option[] = "--exclude=./";
	auto_free char *clean = human_clean_dup(path);

	fprintf(stderr, "lodge: %s: skipped, because it is %s\n", clean ? clean : "", kind);
	return add_word(w, option, strlen(option), name);
}

/* Excludes pipes, sockets and devices, which cannot be copied. tar reports what cannot be read. */
static int exclude_special(struct words *w, const char *dir, struct err *err)
{
	auto_free char *top = strdup(dir);
	char *const roots[] = { top, NULL };
	FTS *tree = top ? fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL) : NULL;
	const FTSENT *e;
	int r = tree ? add_words(w, "--anchored --no-wildcards") : -1;

	while (r == 0 && (e = fts_read(tree))) {
		const char *kind =
			e->fts_info == FTS_DEFAULT ? kind_of(e->fts_statp->st_mode) : NULL;
		const char *name = e->fts_path + strlen(top);

		if (kind && e->fts_level > 0)
			r = exclude(w, name + strspn(name, "/"), e->fts_path, kind);
	}
	if (tree)
		fts_close(tree);
	return r < 0 ? err_sys(err, ENOMEM, "%.160s", dir) : 0;
}

/* ---- the process ----------------------------------------------------------------------------- */

/* Async-signal-safe calls only. As root, tar would create devices and change owners. */
static _Noreturn void become_tar(int dir, int pipe_end, int as, char **argv)
{
	static const int never[] = { CAP_MKNOD, CAP_CHOWN, CAP_SETFCAP, CAP_SYS_ADMIN };

	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		(void)prctl(PR_CAPBSET_DROP, never[i], 0, 0, 0); /* EPERM: not root */
	cleanup_child();
	if (dup2(pipe_end, as) >= 0 && fchdir(dir) == 0)
		execvp("tar", argv);
	_exit(errno == ENOENT ? 127 : 126);
}

/* Ends the words with a NULL. */
static int start(struct tar_child *t, int dir, struct words *w, struct err *err)
{
	bool packs = t->stage < 0;
	int ends[2];
	pid_t pid;

	if ((packs && add_words(w, "-- .") < 0) || !vec_push(&w->items, &w->count, SIZE_MAX))
		return err_sys(err, ENOMEM, "tar");
	unsetenv("TAR_OPTIONS");
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	pid = fork();
	if (pid == 0)
		become_tar(dir, ends[packs], packs ? STDOUT_FILENO : STDIN_FILENO, w->items);
	close(ends[packs]);
	t->fd = ends[!packs];
	if (pid < 0)
		return err_sys(err, errno, "tar");
	t->pid = pid;
	return 0;
}

static int pack(struct tar_child *t, const char *dir, const char *words, bool special,
		struct err *err)
{
	auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_fini(words_fini) struct words w = { 0 };

	*t = (struct tar_child){ .fd = -1, .target = -1, .stage = -1, .ok_status = TAR_CHANGED };
	if (fd < 0)
		return err_sys(err, errno, "%.160s", dir);
	if (add_words(&w, words) < 0)
		return err_sys(err, ENOMEM, "tar");
	return !special && exclude_special(&w, dir, err) < 0 ? -1 : start(t, fd, &w, err);
}

int tar_pack(struct tar_child *t, const char *dir, struct err *err)
{
	return pack(t, dir, pack_words, false, err);
}

int tar_pack_root(struct tar_child *t, const char *dir, struct err *err)
{
	return pack(t, dir, pack_root_words, true, err);
}

/* Callbacks return 1 on failure: file_each_at() takes a negative value for an errno. */
struct moving {
	int to; /* the target directory; -1: none */
	unsigned depth;
	struct err *err;
};

static int fail(struct moving *m, int error, const char *name)
{
	err_sys(m->err, error, "%.160s", name);
	return 1;
}

static int each(struct moving *m, int dir, const char *name, file_each_fn *fn)
{
	int r = file_each_at(dir, name, fn, m);

	return r < 0 ? fail(m, -r, name) : r;
}

/* ---- sanitizing ------------------------------------------------------------------------------ */

static int sanitize_one(int dir, const char *name, void *arg);

/* Also enters directories that their owner may not enter. */
static int sanitize_dir(struct moving *m, int dir, const char *name, mode_t mode)
{
	struct moving inner = { .to = -1, .depth = m->depth + 1, .err = m->err };
	bool shut = (mode & 0500) != 0500;
	int r;

	if (inner.depth > DEPTH_MAX) {
		err_set(m->err, ERR_LIMIT, "directories are nested more than %d deep", DEPTH_MAX);
		return 1;
	}
	if (shut && fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	r = each(&inner, dir, name, sanitize_one);
	if (r == 0 && (shut || mode & 06000) &&
	    fchmodat(dir, name, mode & 01777, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	return r;
}

static int sanitize_one(int dir, const char *name, void *arg)
{
	struct moving *m = arg;
	char clean[256];
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	if (S_ISDIR(st.st_mode))
		return sanitize_dir(m, dir, name, st.st_mode);
	if (S_ISLNK(st.st_mode))
		return 0;
	if (!S_ISREG(st.st_mode)) {
		fprintf(stderr, "lodge: %s: skipped, because it is not a file, directory or link\n",
			human_clean(name, clean, sizeof(clean)));
		return unlinkat(dir, name, 0) < 0 ? fail(m, errno, name) : 0;
	}
	if (st.st_mode & 06000 && fchmodat(dir, name, st.st_mode & 01777, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	return 0;
}

/* ---- moving ---------------------------------------------------------------------------------- */

/* A directory must be writable to get another parent. */
static int move_whole(struct moving *m, int dir, const char *name, const struct stat *st)
{
	int error;

	if (renameat(dir, name, m->to, name) == 0)
		return 0;
	error = errno;
	if (!S_ISDIR(st->st_mode) || error != EACCES || st->st_mode & 0200)
		return fail(m, error, name);
	if (fchmodat(dir, name, (st->st_mode & 01777) | 0700, AT_SYMLINK_NOFOLLOW) < 0 ||
	    renameat(dir, name, m->to, name) < 0 ||
	    fchmodat(m->to, name, st->st_mode & 01777, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	return 0;
}

static int move_one(int dir, const char *name, void *arg)
{
	struct moving *m = arg, inner = { .to = -1, .depth = m->depth + 1, .err = m->err };
	auto_close int to = -1;
	struct stat st, old;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	if (fstatat(m->to, name, &old, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? move_whole(m, dir, name, &st) : fail(m, errno, name);
	if (S_ISDIR(st.st_mode) != S_ISDIR(old.st_mode)) {
		err_set(m->err, ERR_CONFLICT, "%.160s: %s exists here; remove it first", name,
			S_ISDIR(old.st_mode)   ? "a directory"
			: S_ISLNK(old.st_mode) ? "a symbolic link"
					       : "a file");
		return 1;
	}
	if (!S_ISDIR(st.st_mode))
		return move_whole(m, dir, name, &st);
	to = openat(m->to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0 || fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(m, errno, name);
	inner.to = to;
	return each(&inner, dir, name, move_one);
}

/* Moves the contents of the directory `from`, which only this user can access, into the directory
 * `to` of the same file system. Merges directories, replaces files and links, and never follows a
 * link. Clears set-id bits, and skips everything but files, directories and links. */
static int tree_copy(int from, int to, struct err *err)
{
	struct moving m = { .to = -1, .err = err };

	if (each(&m, from, ".", sanitize_one) != 0)
		return -1;
	m.to = to;
	return each(&m, from, ".", move_one) != 0 ? -1 : 0;
}

/* ---- removing -------------------------------------------------------------------------------- */

static int make_writable(int dir, const char *name, void *arg)
{
	unsigned *depth = arg;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	(void)fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW);
	if (++*depth < DEPTH_MAX)
		(void)file_each_at(dir, name, make_writable, depth);
	--*depth;
	return 0;
}

/* Removes dir/name recursively, also from directories without write permission. */
static void tree_copy_drop(int dir, const char *name)
{
	unsigned depth = 0;

	(void)make_writable(dir, name, &depth);
	(void)file_remove_tree_at(dir, name);
}

/* ---- unpacking ------------------------------------------------------------------------------- */

/* A directory that only this user can read. */
static int make_stage(struct tar_child *t, struct err *err)
{
	unsigned long long salt;
	struct stat st;

	if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return err_sys(err, errno, "random");
	snprintf(t->name, sizeof(t->name), ".lodge-cp-%016llx", salt);
	if (mkdirat(t->target, t->name, 0700) < 0) {
		t->name[0] = '\0';
		return err_sys(err, errno, "target directory");
	}
	t->stage = openat(t->target, t->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->stage < 0 || fstat(t->stage, &st) < 0)
		return err_sys(err, errno, "target directory");
	/* another user who can write to the target may have replaced it */
	if (st.st_uid == geteuid() && !(st.st_mode & 077))
		return 0;
	t->name[0] = '\0';
	return err_set(err, ERR_DENIED,
		       "target directory: another user replaced a temporary directory in it; "
		       "copy to a private directory");
}

int tar_unpack(struct tar_child *t, int target, struct err *err)
{
	auto_fini(words_fini) struct words w = { 0 };
	int r;

	*t = (struct tar_child){ .fd = -1, .target = target, .stage = -1 };
	if (cleanup_set(tar_abort, t, err) < 0)
		return -1;
	cleanup_hold();
	r = add_words(&w, unpack_words) < 0 ? err_sys(err, ENOMEM, "tar") : make_stage(t, err);
	if (r == 0)
		r = start(t, t->stage, &w, err);
	cleanup_release();
	return r;
}

static int wait_for(struct tar_child *t, struct err *err)
{
	int status = 0;

	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	while (t->pid > 0 && waitpid(t->pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(err, errno, "tar");
	t->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) <= t->ok_status)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_set(err, ERR_NOT_FOUND, "cannot copy directories: tar is not installed");
	return err_set(err, ERR_INVALID, "tar failed (see above)%s",
		       t->stage >= 0 ? "; nothing was copied" : "");
}

int tar_finish(struct tar_child *t, struct err *err)
{
	if (wait_for(t, err) < 0)
		return -1;
	return t->stage < 0 ? 0 : tree_copy(t->stage, t->target, err);
}

void tar_abort(void *tar_child)
{
	struct tar_child *t = tar_child;

	if (t->pid > 0) {
		kill(t->pid, SIGKILL);
		while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (t->fd >= 0)
		close(t->fd);
	if (t->stage >= 0)
		close(t->stage);
	if (*t->name)
		tree_copy_drop(t->target, t->name);
	*t = (struct tar_child){ .fd = -1, .target = -1, .stage = -1 };
}
