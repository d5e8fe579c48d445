/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: one session per conversation of a user, as the bash tool of an agent uses it. The HTTP
 * API and liblodge share these rules. */
#ifndef LODGE_THREAD_THREAD_H
#define LODGE_THREAD_THREAD_H

#include <sys/stat.h>

#include "sandbox/files_client.h"
#include "exec/side_conn.h"
#include "sandbox/files_stream.h"
#include "machine/exec.h"
#include "sandbox/template/template.h"
#include "session/session_api.h"

struct side_conn;

enum { THREAD_MINUTES_MAX = 7 * 24 * 60, THREAD_TIMEOUT_S = 30, THREAD_TIMEOUT_MAX_S = 24 * 3600 };

/* Settings of new sessions. 0 or NULL: the default. */
struct thread_config {
	uint64_t memory_bytes, cpu_milli, pids, file_bytes, disk_bytes;
	uint64_t files; /* maximum number of files in the workspace when one is uploaded */
	int64_t idle_ms;
	const char *user, *workdir;
	const char *template; /* "host" */
	const char *policy; /* of the caller's tenant; NULL: the template's, if any */
	unsigned pool_min, pool; /* only reported, as max_active of the engine is */
	unsigned demand; /* enum keeper_demand: set by thread_config_check() */
};
/* Fills in the defaults. ERR_INVALID names the setting. */
int thread_config_check(struct thread_config *t, struct err *err);

/* Enters the thread's session. SESSION_REUSED: it exists, and this counts as a use of it. Otherwise
 * the session is new, SESSION_REPLACED if an earlier one of the thread is known to have ended.
 * ERR_DENIED: the session belongs to another user. minutes: idle timeout; 0: as configured. */
int thread_enter(struct engine *e, const struct caller *who, const struct thread_config *t,
		 const char *user, const char *thread, int64_t minutes,
		 struct session_enter_result *ret, struct err *err);

/* ---- commands -------------------------------------------------------------------------------- */

int thread_timeout(double seconds, uint32_t *ret_ms, struct err *err);
/* The exit code as a shell reports it; -1 if it is unknown. */
int thread_exit_code(struct exec_handle *x, const struct guest_exec_result *r, int *ret,
		     struct err *err);

/* ---- files ----------------------------------------------------------------------------------- */

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
