/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a thread's workspace. */
#ifndef LODGE_THREAD_THREAD_FILES_H
#define LODGE_THREAD_THREAD_FILES_H

#include <sys/stat.h>

#include "exec/side_conn.h"
#include "sandbox/files_client.h"
#include "sandbox/files_stream.h"
#include "thread/thread.h"

/* The name must be relative, must not leave the workspace, and must not contain a backslash. */
bool thread_name_is_valid(const char *name);

/* Regular files in the workspace, without unfinished uploads. */
struct thread_files_total {
	uint64_t files, bytes;
};
int thread_files_count(struct side_conn *conn, struct thread_files_total *ret, struct err *err);

struct thread_file {
	char *name;
	uint64_t size;
	int64_t mtime_ns;
	uint32_t mode;
};
struct thread_files {
	struct thread_file *items; /* newest first; only the newest if there are too many */
	size_t count;
	struct thread_files_total total;
};
/* Calls `gone` from time to time; if it returns true, the client has disconnected and the call
 * fails with ERR_UNAVAILABLE. `gone` may be NULL. */
int thread_files_list(struct side_conn *conn, files_cancelled_fn *gone, void *arg,
		      struct thread_files *ret, struct err *err);
void thread_files_fini(struct thread_files *l);

enum thread_limit {
	THREAD_LIMIT_NONE,
	THREAD_LIMIT_FILE_SIZE,
	THREAD_LIMIT_FILES,
	THREAD_LIMIT_DISK,
};
struct thread_limit_hit {
	enum thread_limit limit;
	uint64_t max, used, requested;
};
struct thread_write_result {
	char path[AGENT_PATH_MAX]; /* inside the sandbox */
	uint64_t size;
	struct thread_limit_hit limit_hit; /* on ERR_LIMIT; also set when it fails */
};
/* Writes the rest of `fd` to a file of the workspace, completely or not at all. ERR_INVALID: the
 * name. */
int thread_file_write(struct side_conn *conn, const struct thread_config *t, const char *name,
		      int fd, struct thread_write_result *ret, struct err *err);
/* Opens the file for reading; the caller owns the descriptor. ERR_INVALID: the name is invalid or
 * not that of a regular file. */
int thread_file_open(struct side_conn *conn, const char *name, int *ret_fd, struct stat *ret,
		     struct err *err);

#endif
