/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/tar_child.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/capability.h>
#include <signal.h>
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
#include "cli/copy/tree_copy.h"
#include "cli/core/cleanup.h"
#include "cli/core/human.h"

struct list {
	char **options;
	size_t n;
};

static void tar_extract_filter_free(char **options)
{
	for (char **o = options; o && *o; o++)
		free(*o);
	free((void *)options);
}

/* NULL: it can be copied. */
static const char *kind_of(mode_t mode)
{
	return S_ISFIFO(mode)			? "a pipe"
	       : S_ISSOCK(mode)			? "a socket"
	       : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
						: NULL;
}

static int add(struct list *l, const char *option, const char *name)
{
	char **more = reallocarray((void *)l->options, l->n + 2, sizeof(*more));
	char *word;

	if (!more)
		return -1;
	l->options = more;
	more[l->n] = NULL;
	if (asprintf(&word, "%s%s", option, name) < 0)
		return -1;
	more[l->n++] = word;
	more[l->n] = NULL;
	return 0;
}

static int exclude(struct list *l, const char *path, size_t root, const char *kind)
{
	auto_free char *clean = human_clean_dup(path);
	const char *name = path + root + strspn(path + root, "/");

	fprintf(stderr, "lodge: %s: skipped, because it is %s\n", clean ? clean : "", kind);
	/* exact names from the top, so that no other file is excluded */
	if (!l->n && (add(l, "--anchored", "") < 0 || add(l, "--no-wildcards", "") < 0))
		return -1;
	return add(l, "--exclude=./", name);
}

static int tar_extract_filter(const char *dir, char ***ret, struct err *err)
{
	auto_free char *top = strdup(dir);
	char *const roots[] = { top, NULL };
	struct list l = { 0 };
	FTS *tree = top ? fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL) : NULL;
	const FTSENT *e;
	int r = tree ? 0 : -1;

	while (r == 0 && (e = fts_read(tree))) {
		const char *kind =
			e->fts_info == FTS_DEFAULT ? kind_of(e->fts_statp->st_mode) : NULL;

		if (kind && e->fts_level > 0)
			r = exclude(&l, e->fts_path, strlen(top), kind);
	}
	if (tree)
		fts_close(tree);
	*ret = l.options;
	return r < 0 ? err_sys(err, ENOMEM, "%.160s", dir) : 0;
}

enum { TAR_CHANGED = 1 }; /* its exit status if a file changed while it was read */

DEFINE_AUTO(char **, tar_extract_filter_free);

static const char *const pack_words[] = {
	"tar", "--create", "--file=-", "--format=pax", "--sparse-version=1.0", NULL
};
/* Owners by number, nothing that is mounted, and nothing that every start creates. */
static const char *const pack_root_words[] = { "tar",
					       "--create",
					       "--file=-",
					       "--format=pax",
					       "--pax-option=delete=atime,delete=ctime",
					       "--numeric-owner",
					       "--one-file-system",
					       "--warning=no-file-ignored",
					       "--exclude=./dev/*",
					       "--exclude=./proc/*",
					       "--exclude=./sys/*",
					       NULL };
static const char *const pack_what[] = { "--", ".", NULL };
/* No --absolute-names: tar removes leading slashes, and refuses names with "..". */
static const char *const unpack_words[] = { "tar",
					    "--extract",
					    "--file=-",
					    "--no-same-owner",
					    "--no-same-permissions", /* the umask holds */
					    "--delay-directory-restore",
					    "--no-acls",
					    "--no-selinux",
					    "--no-xattrs",
					    "--warning=no-timestamp",
					    NULL };

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

static size_t count(char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

/* execvp() does not modify the words, although its type allows it. */
static char **join(const void *first, const void *more, const void *last)
{
	char *const *parts[] = { first, more, last };
	size_t n = 0;
	char **all;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		n += count(parts[i]);
	all = calloc(n + 1, sizeof(*all));
	n = 0;
	for (size_t i = 0; all && i < ARRAY_LEN(parts); i++)
		for (char *const *word = parts[i]; word && *word; word++)
			all[n++] = *word;
	return all;
}

static int start(struct tar_child *t, int dir, const char *const *words, char *const *exclude,
		 struct err *err)
{
	bool packs = t->stage < 0;
	auto_free char **argv = join(words, exclude, packs ? pack_what : NULL);
	int ends[2];
	pid_t pid;

	if (!argv)
		return err_sys(err, ENOMEM, "tar");
	unsetenv("TAR_OPTIONS");
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, errno, "pipe");
	pid = fork();
	if (pid == 0)
		become_tar(dir, ends[packs ? 1 : 0], packs ? STDOUT_FILENO : STDIN_FILENO, argv);
	close(ends[packs ? 1 : 0]);
	t->fd = ends[packs ? 0 : 1];
	if (pid < 0)
		return err_sys(err, errno, "tar");
	t->pid = pid;
	return 0;
}

int tar_pack(struct tar_child *t, const char *dir, struct err *err)
{
	auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_call(tar_extract_filter_free) char **exclude = NULL;

	*t = (struct tar_child){ .fd = -1, .target = -1, .stage = -1, .ok_status = TAR_CHANGED };
	if (fd < 0)
		return err_sys(err, errno, "%.160s", dir);
	return tar_extract_filter(dir, &exclude, err) < 0 ? -1
							  : start(t, fd, pack_words, exclude, err);
}

int tar_pack_root(struct tar_child *t, const char *dir, struct err *err)
{
	auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*t = (struct tar_child){ .fd = -1, .target = -1, .stage = -1, .ok_status = TAR_CHANGED };
	if (fd < 0)
		return err_sys(err, errno, "%.160s", dir);
	return start(t, fd, pack_root_words, NULL, err);
}

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
	int r;

	*t = (struct tar_child){ .fd = -1, .target = target, .stage = -1 };
	if (cleanup_set(tar_abort, t, err) < 0)
		return -1;
	cleanup_hold();
	r = make_stage(t, err) < 0 ? -1 : start(t, t->stage, unpack_words, NULL, err);
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
