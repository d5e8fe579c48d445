/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of threads: the machine that a conversation of a user has, as a bash tool of an agent
 * uses it. Whoever offers them, over HTTP or in the same process, has these rules from here. */
#ifndef LODGE_THREAD_THREAD_H
#define LODGE_THREAD_THREAD_H

#include <sys/stat.h>

#include "sandbox/files_client.h"
#include "sandbox/files_stream.h"
#include "machine/exec.h"

enum { THREAD_MINUTES_MAX = 7 * 24 * 60, THREAD_TIMEOUT_S = 30, THREAD_TIMEOUT_MAX_S = 24 * 3600 };

/* What new ones are like. 0 or NULL: the default. */
struct thread_rules {
	uint64_t memory_bytes, cpu_milli, pids, file_bytes, disk_bytes;
	uint64_t files; /* how many of them an upload may find */
	int64_t idle_ms;
	const char *user, *workdir;
	const char *template; /* "host" */
	const char *policy; /* of the caller's tenant; NULL: the template's, if any */
	unsigned pool_min, pool; /* only told, as max_active of the engine is */
	unsigned demand; /* enum keeper_demand: set by thread_rules_check() */
};
/* Puts the defaults in place. ERR_INVALID names the setting. */
int thread_rules_check(struct thread_rules *t, struct err *err);

/* The thread's session: SESSION_REUSED of one that is there, which is used by it; else a new one
 * was made, SESSION_REPLACED where an earlier one of the thread is known to be gone. ERR_DENIED if
 * that is another user's. minutes: of its idle time; 0: as the rules say. */
int thread_enter(struct engine *e, const struct caller *who, const struct thread_rules *t,
		 const char *user, const char *thread, int64_t minutes,
		 struct session_enter_result *ret, struct err *err);

/* ---- commands -------------------------------------------------------------------------------- */

int thread_timeout(double seconds, uint32_t *ret_ms, struct err *err);
/* As a shell tells it; -1 of one whose end nobody saw. */
int thread_exit_code(struct exec_handle *x, const struct guest_exec_result *r, int *ret,
		     struct err *err);

/* ---- files ----------------------------------------------------------------------------------- */

/* Relative, within the workspace by its text, and none that another system would read otherwise. */
bool thread_name_is_valid(const char *name);

/* Regular files in the workspace, without those that are still being written. */
struct thread_files_describe {
	uint64_t files, bytes;
};
int thread_files_describe(struct side_conn *loan, struct thread_files_describe *ret,
			  struct err *err);

struct thread_file {
	char *name;
	uint64_t size;
	int64_t mtime_ns;
	uint32_t mode;
};
struct thread_files {
	struct thread_file *items; /* newest first; of too many the newest */
	size_t count;
	struct thread_files_describe all;
};
/* `gone` is asked now and then whether whoever wants it has left (ERR_UNAVAILABLE); may be NULL. */
int thread_files_list(struct side_conn *loan, files_cancelled_fn *gone, void *arg,
		      struct thread_files *ret, struct err *err);
void thread_files_fini(struct thread_files *l);

enum thread_full { THREAD_FITS, THREAD_FILE_SIZE, THREAD_FILE_COUNT, THREAD_ROOM };
struct thread_refusal {
	enum thread_full why;
	uint64_t max, now, asked;
};
struct thread_put {
	char path[AGENT_PATH_MAX]; /* as the sandbox is told */
	uint64_t size;
	struct thread_refusal refusal; /* on ERR_LIMIT; also set when it fails */
};
/* The rest of `fd` as a file of the workspace: all or nothing. ERR_INVALID: the name. */
int thread_put(struct side_conn *loan, const struct thread_rules *t, const char *name, int fd,
	       struct thread_put *ret, struct err *err);
/* To read it; the descriptor is the caller's. ERR_INVALID: the name, or it is no file. */
int thread_open(struct side_conn *loan, const char *name, int *ret_fd, struct stat *ret,
		struct err *err);

#endif
