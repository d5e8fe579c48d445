/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox. Every path is resolved inside, by lodge-init, with the rights of the guest's
 * user; what comes out is a descriptor of a regular file or a directory. All calls block; `user`
 * may be NULL everywhere (the default one), relative paths start at that user's home. */
#ifndef LODGE_SANDBOX_FILES_CLIENT_H
#define LODGE_SANDBOX_FILES_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/err.h"
#include "sandbox/guest_exec.h"
#include "wire/agent_proto.h"

struct sandbox;

/* A descriptor of the file, AGENT_READ ... flags; the caller's. For streaming of any size. */
int files_open(struct sandbox *sb, const char *user, const char *path, unsigned flags, mode_t mode,
	       int *ret_fd, struct err *err);

/* Whole content, at most max bytes (more is ERR_LIMIT); *ret is the caller's, and ends with a NUL
 * that does not count. */
int files_read(struct sandbox *sb, const char *user, const char *path, size_t max, void **ret,
	       size_t *ret_len, struct err *err);
/* All or nothing: a temporary file renamed over `path`. flags: AGENT_PARENTS, AGENT_NOREPLACE. */
int files_write(struct sandbox *sb, const char *user, const char *path, const void *data,
		size_t len, unsigned flags, mode_t mode, struct err *err);
int files_append(struct sandbox *sb, const char *user, const char *path, const void *data,
		 size_t len, mode_t mode, struct err *err);

/* Whether it is what a file is called until all of it is there: nobody asked for that one. */
bool files_is_unfinished(const char *path);

/* The same in pieces: write to files_put_fd(), then commit or free (which aborts). */
struct files_put;
int files_put_new(struct sandbox *sb, const char *user, const char *path, unsigned flags,
		  mode_t mode, struct files_put **ret, struct err *err);
int files_put_fd(const struct files_put *p); /* borrowed */
int files_put_commit(struct files_put *p, struct err *err);
void files_put_free(struct files_put *p);
DEFINE_AUTO(struct files_put *, files_put_free);

struct files_stat {
	struct agent_stat st;
	char *target; /* of a symbolic link, NUL-terminated; else NULL; the caller's */
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

/* ---- jobs: long operations that run as a process inside ------------------------------------- */
struct files_job_spec {
	enum agent_job_op op;
	unsigned flags; /* enum agent_job_flag */
	const char *user, *path;
	uint32_t depth, timeout_ms;
	uint64_t max_bytes, max_entries;
	int fd; /* where it reads or writes; borrowed */
	const struct guest_exec_ops *ops;
	void *arg;
};
/* An exec without logs: on_end, guest_exec_wait(), guest_exec_kill() and guest_exec_free() are for
 * it too. */
int files_job_begin(struct sandbox *sb, const struct files_job_spec *spec, struct guest_exec **ret,
		    struct err *err);
/* -1 with the reason if the ended job failed. */
int files_job_check(struct guest_exec *job, const char *what, struct err *err);

/* Whole trees; a missing path is success. */
int files_remove_tree(struct sandbox *sb, const char *user, const char *path, struct err *err);
/* The same; `gone` is asked now and then whether whoever wants it has left: then it ends in the
 * middle, ERR_UNAVAILABLE. */
typedef bool files_cancelled_fn(void *arg);
int files_remove_tree_cancellable(struct sandbox *sb, const char *user, const char *path,
				  files_cancelled_fn *gone, void *arg, struct err *err);
/* Streams a pax tar of the directory's content to `fd` / from `fd` into the directory. */
int files_tar_out(struct sandbox *sb, const char *user, const char *path, int fd, struct err *err);
int files_tar_in(struct sandbox *sb, const char *user, const char *path, int fd, unsigned flags,
		 struct err *err);
/* The same in; `look` is called now and then while it goes on. Of a regular file the offset of `fd`
 * tells how far it has been read. */
typedef void files_progress_fn(void *arg);
int files_tar_in_progress(struct sandbox *sb, const char *user, const char *path, int fd,
			  files_progress_fn *look, void *arg, uint32_t timeout_ms, struct err *err);

/* path is relative to the listed directory, any byte but NUL; target NULL unless a link. Return
 * other than 0 stops the listing, which then returns that number. */
typedef int files_entry_fn(void *arg, const char *path, const struct agent_stat *st,
			   const char *target);
/* Sorted by name, depth first; depth 1: only the directory itself. */
int files_list(struct sandbox *sb, const char *user, const char *path, uint32_t depth,
	       files_entry_fn *fn, void *arg, struct err *err);

/* Changes below a directory. files_watch_new() returns when it is armed: nothing after it is
 * missed (or AGENT_CHANGE_LOST says so). */
struct files_watch;
struct files_change {
	enum agent_change_kind kind;
	bool is_dir;
	const char *path; /* good until the next call */
};
int files_watch_new(struct sandbox *sb, const char *user, const char *path, bool recursive,
		    struct files_watch **ret, struct err *err);
int files_watch_fd(const struct files_watch *w); /* POLLIN: files_watch_next() has something */
/* 1: *ret filled; 0: nothing within timeout_ms (< 0: wait); -1: the watch is over. */
int files_watch_next(struct files_watch *w, int timeout_ms, struct files_change *ret,
		     struct err *err);
void files_watch_free(struct files_watch *w);
DEFINE_AUTO(struct files_watch *, files_watch_free);

#endif
