/* SPDX-License-Identifier: Apache-2.0 */
/* Long file operations, which run as file jobs (a process of the sandbox) and stream through a
 * descriptor. `user` and paths as in files_client.h. */
#ifndef LODGE_SANDBOX_FILES_STREAM_H
#define LODGE_SANDBOX_FILES_STREAM_H

#include "sandbox/guest_exec.h"

struct sandbox;

struct files_job_spec {
	enum agent_job_op op;
	unsigned flags; /* enum agent_job_flag */
	const char *user, *path;
	uint32_t depth, timeout_ms;
	uint64_t max_bytes, max_entries;
	int fd; /* input or output of the job; borrowed */
	const struct guest_exec_ops *ops;
	void *arg;
};
/* Returns an exec without logs: on_end, guest_exec_wait(), guest_exec_kill() and guest_exec_free()
 * work for it. */
int files_job_begin(struct sandbox *sb, const struct files_job_spec *spec, struct guest_exec **ret,
		    struct err *err);
/* -1 with the reason if the job failed. */
int files_job_check(struct guest_exec *job, const char *what, struct err *err);
/* Begins it, waits for its end and checks it. */
int files_job_run(struct sandbox *sb, const struct files_job_spec *spec, struct err *err);

/* Removes a whole tree; a missing path is success. */
int files_remove_tree(struct sandbox *sb, const char *user, const char *path, struct err *err);
/* The same; calls is_cancelled(), unless it is NULL, periodically. If it returns true, the removal
 * stops and the call fails with ERR_UNAVAILABLE. */
typedef bool files_cancelled_fn(void *arg);
int files_remove_tree_cancellable(struct sandbox *sb, const char *user, const char *path,
				  files_cancelled_fn *is_cancelled, void *arg, struct err *err);
/* Streams a pax tar of the directory's content to `fd` / from `fd` into the directory. */
int files_tar_out(struct sandbox *sb, const char *user, const char *path, int fd, struct err *err);
int files_tar_in(struct sandbox *sb, const char *user, const char *path, int fd, unsigned flags,
		 struct err *err);
/* As files_tar_in(); calls on_progress() periodically. If `fd` is a regular file, its offset shows
 * how far it has been read. */
typedef void files_progress_fn(void *arg);
int files_tar_in_progress(struct sandbox *sb, const char *user, const char *path, int fd,
			  files_progress_fn *on_progress, void *arg, uint32_t timeout_ms,
			  struct err *err);

/* path is relative to the listed directory and can contain any byte but NUL; target is NULL unless
 * it is a link. A result other than 0 stops the listing and is returned. */
typedef int files_entry_fn(void *arg, const char *path, const struct agent_stat *st,
			   const char *target);
/* Sorted by name, depth first; depth 1: only the directory itself. */
int files_list(struct sandbox *sb, const char *user, const char *path, uint32_t depth,
	       files_entry_fn *fn, void *arg, struct err *err);

/* Changes below a directory. files_watch_new() returns when the watch is active: later changes are
 * reported, or AGENT_CHANGE_LOST. */
struct files_watch;
struct files_change {
	enum agent_change_kind kind;
	bool is_dir;
	const char *path; /* valid until the next call */
};
int files_watch_new(struct sandbox *sb, const char *user, const char *path, bool recursive,
		    struct files_watch **ret, struct err *err);
/* 1: *ret filled; 0: no change within timeout_ms (< 0: wait); -1: the watch ended. */
int files_watch_next(struct files_watch *w, int timeout_ms, struct files_change *ret,
		     struct err *err);
int files_watch_fd(const struct files_watch *w); /* readable when there is a change */
void files_watch_free(struct files_watch *w);
DEFINE_AUTO(struct files_watch *, files_watch_free);

#endif
