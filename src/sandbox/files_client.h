/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox. lodge-init resolves every path inside, with the rights of the user, and
 * returns only descriptors of regular files and directories. All calls block. `user` may be NULL
 * (the default user); relative paths start at that user's home. */
#ifndef LODGE_SANDBOX_FILES_CLIENT_H
#define LODGE_SANDBOX_FILES_CLIENT_H

#include <sys/types.h>

#include "base/auto.h"
#include "base/err.h"
#include "wire/agent_proto.h"

struct sandbox;

/* A descriptor of the file, owned by the caller; flags: AGENT_READ ... For streams of any size. */
int files_open(struct sandbox *sb, const char *user, const char *path, unsigned flags, mode_t mode,
	       int *ret_fd, struct err *err);

/* The whole content, at most max bytes (more is ERR_LIMIT). The caller owns *ret, which has a NUL
 * after the content. */
int files_read(struct sandbox *sb, const char *user, const char *path, size_t max, void **ret,
	       size_t *ret_len, struct err *err);
/* Atomic: renames a temporary file over `path`. flags: AGENT_PARENTS, AGENT_NOREPLACE. */
int files_write(struct sandbox *sb, const char *user, const char *path, const void *data,
		size_t len, unsigned flags, mode_t mode, struct err *err);
int files_append(struct sandbox *sb, const char *user, const char *path, const void *data,
		 size_t len, mode_t mode, struct err *err);

/* The name of a temporary file of files_write() or files_put_new(), to be hidden from users. */
bool files_is_unfinished(const char *path);

/* files_write() in steps: write to files_put_fd(), then commit, or free to abort. */
struct files_put;
int files_put_new(struct sandbox *sb, const char *user, const char *path, unsigned flags,
		  mode_t mode, struct files_put **ret, struct err *err);
int files_put_fd(const struct files_put *p); /* borrowed */
int files_put_commit(struct files_put *p, struct err *err);
void files_put_free(struct files_put *p);
DEFINE_AUTO(struct files_put *, files_put_free);

struct files_stat {
	struct agent_stat st;
	char *target; /* of a symbolic link, NUL-terminated, owned by the caller; else NULL */
};
/* follow false: the link itself. */
int files_stat(struct sandbox *sb, const char *user, const char *path, bool follow,
	       struct files_stat *ret, struct err *err);

int files_mkdir(struct sandbox *sb, const char *user, const char *path, bool parents, mode_t mode,
		struct err *err);
int files_rename(struct sandbox *sb, const char *user, const char *from, const char *to,
		 bool replace, struct err *err);
int files_remove(struct sandbox *sb, const char *user, const char *path, struct err *err);
int files_symlink(struct sandbox *sb, const char *user, const char *target, const char *path,
		  struct err *err);
int files_chmod(struct sandbox *sb, const char *user, const char *path, mode_t mode,
		struct err *err);

#endif
