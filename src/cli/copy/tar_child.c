/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/tar_child.h"

#include <errno.h>
#include <fcntl.h>
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
#include "cli/copy/tar_extract.h"
#include "cli/core/cleanup.h"

enum { TAR_CHANGED = 1 }; /* its status if something did while it was read */

DEFINE_AUTO(char **, tar_extract_filter_free);

static const char *const pack_words[] = {
	"tar", "--create", "--file=-", "--format=pax", "--sparse-version=1.0", NULL
};
/* Owners by number, and nothing of what is mounted in it or made anew by every start. */
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
/* No --absolute-names: leading slashes go, and names with ".." are refused. */
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

/* Only what is safe between fork and exec. Root's tar would make devices and give files away. */
static _Noreturn void become_tar(int dir, int pipe_end, int as, char **argv)
{
	static const int never[] = { CAP_MKNOD, CAP_CHOWN, CAP_SETFCAP, CAP_SYS_ADMIN };

	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		(void)prctl(PR_CAPBSET_DROP, never[i], 0, 0, 0); /* EPERM: there is none to drop */
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

/* Exec does not change the words, and says so in no type. */
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

static int start(struct tar_child *t, int dir, const char *const *words, char *const *leave,
		 struct err *err)
{
	bool packs = t->stage < 0;
	auto_free char **argv = join(words, leave, packs ? pack_what : NULL);
	int ends[2];
	pid_t pid;

	if (!argv)
		return err_sys(err, ENOMEM, "tar");
	unsetenv("TAR_OPTIONS"); /* nobody else has a say in how */
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
	auto_call(tar_extract_filter_free) char **leave = NULL;

	*t = (struct tar_child){ .fd = -1, .target = -1, .stage = -1, .fine = TAR_CHANGED };
	if (fd < 0)
		return err_sys(err, errno, "%.160s", dir);
	return tar_extract_filter(dir, &leave, err) < 0 ? -1 : start(t, fd, pack_words, leave, err);
}

int tar_pack_root(struct tar_child *t, const char *dir, struct err *err)
{
	auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*t = (struct tar_child){ .fd = -1, .target = -1, .stage = -1, .fine = TAR_CHANGED };
	if (fd < 0)
		return err_sys(err, errno, "%.160s", dir);
	return start(t, fd, pack_root_words, NULL, err);
}

/* A directory that nobody else may look into. */
static int make_stage(struct tar_child *t, struct err *err)
{
	unsigned long long salt;
	struct stat st;

	if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return err_sys(err, errno, "random");
	snprintf(t->name, sizeof(t->name), ".lodge-cp-%016llx", salt);
	if (mkdirat(t->target, t->name, 0700) < 0) {
		t->name[0] = '\0';
		return err_sys(err, errno, "the target directory");
	}
	t->stage = openat(t->target, t->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->stage < 0 || fstat(t->stage, &st) < 0)
		return err_sys(err, errno, "the target directory");
	/* in a target that others may write to it may have been changed for another */
	if (st.st_uid == geteuid() && !(st.st_mode & 077))
		return 0;
	t->name[0] = '\0';
	return err_set(err, ERR_DENIED, "the target directory: somebody else works in it");
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
	if (WIFEXITED(status) && WEXITSTATUS(status) <= t->fine)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_set(err, ERR_NOT_FOUND, "tar: not installed; directories need it");
	return err_set(err, ERR_INVALID, "tar failed; what it said is above%s",
		       t->stage >= 0 ? ", and nothing was copied" : "");
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
