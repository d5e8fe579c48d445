/* SPDX-License-Identifier: Apache-2.0 */
/* liblodge: commands of a session. Included by lodge.h. */
#ifndef LODGE_EXEC_H
#define LODGE_EXEC_H

#include <lodge.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls that need the sandbox of a session resume it. Returns how the last such call of this thread
 * (lodge_run(), lodge_exec_start(), lodge_file_*()) found the session; LODGE_REPLACED: earlier
 * files are lost; 0: the call failed before. */
enum lodge_outcome lodge_last_outcome(void);

struct lodge_command { /* never NULL */
	size_t size;
	const char *const *argv; /* NULL-terminated; or: */
	const char *text; /* bash text */
	const char *const *env; /* NULL-terminated "NAME=VALUE", over the session's */
	const char *cwd, *user; /* NULL: the session's */
	const void *input; /* standard input, with lodge_run() only; NULL: none */
	size_t input_len;
	__extension__ union { /* calls with the same key return the same command */
		const char *idempotency_key;
		const char *once LODGE_OLD_NAME("idempotency_key");
	};
	uint64_t output_bytes; /* bytes retained per stream; 0: the session's limit, or 1 MiB, or
				  less if little memory for output is left */
	uint32_t timeout_ms; /* 0: none; kills the command and everything it started */
	uint32_t rows, cols; /* of the terminal */
	int pty; /* not 0: on a terminal; all output is LODGE_STDOUT */
	int merge; /* not 0: standard error is merged into standard output */
	int login; /* not 0: a login shell */
	int no_resume; /* not 0: LODGE_CONFLICT if the session is hibernated */

	/* For lodge_exec_start() only. */
	int background; /* not 0: marked as a background command in its record */
	int stdin_open; /* not 0: lodge_exec_write() writes to its standard input */
	int hold; /* not 0: a full output log blocks the command until lodge_exec_consumed() */
};

enum lodge_hit { /* limits that a command hit */
		 LODGE_HIT_TIME = 1 << 0,
		 LODGE_HIT_MEMORY = 1 << 1,
		 LODGE_HIT_PIDS = 1 << 2,
		 LODGE_HIT_OUTPUT = 1 << 3,
		 LODGE_HIT_DISK = 1 << 4,
		 LODGE_HIT_FILE = 1 << 5,
};

struct lodge_result {
	const char *exec_id;
	__extension__ union { /* -1 when killed by a signal */
		int exit_code;
		int code LODGE_OLD_NAME("exit_code");
	};
	int signal; /* 0 when it exited */
	__extension__ union { /* enum lodge_hit */
		unsigned limits_hit;
		unsigned hits LODGE_OLD_NAME("limits_hit");
	};
	char *out, *err; /* NUL-terminated; any bytes */
	size_t out_len, err_len;
	uint64_t out_total, err_total; /* total bytes the command wrote */
	uint64_t duration_us, cpu_us, max_rss_bytes;
	int status; /* as in a shell: the exit code, or 128 + signal; -1: unknown */
};

/* Runs a command to its end. A command that fails is a result, also one that cannot be executed
 * (exit_code 127 or 126, and err says why); -1 means that there is none. */
int lodge_run(struct lodge *l, const struct lodge_ref *ref, const struct lodge_command *cmd,
	      struct lodge_result **ret);

/* A handle of one command. The command depends neither on its handles nor on this process: it keeps
 * running without them, and its output can be read later by its id. */
struct lodge_exec;

/* Returns once the command has started. */
int lodge_exec_start(struct lodge *l, const struct lodge_ref *ref, const struct lodge_command *cmd,
		     struct lodge_exec **ret);
/* Opens a command that any process started earlier. */
int lodge_exec_open(struct lodge *l, const char *exec_id, struct lodge_exec **ret);
/* Closes the handle; the command keeps running. Accepts NULL. */
void lodge_exec_close(struct lodge_exec *x);
const char *lodge_exec_id(const struct lodge_exec *x); /* valid until lodge_exec_close() */

enum lodge_exec_state {
	LODGE_EXEC_RUNNING,
	LODGE_EXEC_EXITED,
	LODGE_EXEC_KILLED, /* killed by a signal, a timeout, or with its sandbox */
	LODGE_EXEC_LOST, /* its result is unknown */
};

struct lodge_exec_info {
	const char *id, *session;
	const char *command; /* JSON: an array, or bash text as a string */
	enum lodge_exec_state state;
	int background, timed_out, oom_killed, truncated;
	int exit_code, signal; /* as in struct lodge_result */
	int64_t incarnation; /* of the session's sandbox */
	int64_t started_at, ended_at;
	int64_t stdout_bytes, stderr_bytes; /* total bytes it wrote */
	int64_t cpu_ms, max_rss_bytes;
	const char *reason; /* why lodge ended it; "": it ended by itself, or is running */
};
int lodge_exec_get(struct lodge_exec *x, struct lodge_exec_info **ret);

struct lodge_execs {
	struct lodge_exec_info **items;
	size_t count;
	int64_t next;
};
/* Lists the commands of a session in order of start, including ended ones. limit 0: 100. */
int lodge_exec_list(struct lodge *l, const struct lodge_ref *ref, int64_t after, uint32_t limit,
		    struct lodge_execs **ret);

/* Waits for its end; timeout_ms < 0: without a timeout. LODGE_TIMEOUT leaves it running. *ret has
 * the result with the output that is retained; ret may be NULL. The symbol lodge_exec_wait is still
 * the call of version 0.1, which has no `ret`: programs that look symbols up by name use the other.
 */
int lodge_exec_wait(struct lodge_exec *x, int64_t timeout_ms,
		    struct lodge_result **ret) __asm__("lodge_exec_wait_result");
int lodge_exec_ended(struct lodge_exec *x); /* 1 or 0 */

enum lodge_stream { LODGE_STDOUT, LODGE_STDERR };

/* [*ret_start, *ret_end) is the part of the stream that can be read now. */
int lodge_exec_range(struct lodge_exec *x, enum lodge_stream s, uint64_t *ret_start,
		     uint64_t *ret_end);
/* Reads bytes from `offset` on, waiting up to wait_ms for the first. *ret 0: none yet, or the end
 * if lodge_exec_ended(). */
int lodge_exec_read(struct lodge_exec *x, enum lodge_stream s, uint64_t offset, void *buf,
		    size_t size, int64_t wait_ms, size_t *ret);
/* Waits for output beyond these offsets in either stream. 1: there is some; 0: a timeout, or the
 * command ended. */
int lodge_exec_wait_output(struct lodge_exec *x, uint64_t out, uint64_t err, int64_t wait_ms);
/* With `hold`: releases output before these offsets. */
int lodge_exec_consumed(struct lodge_exec *x, uint64_t out, uint64_t err);

/* Writes to standard input; returns once the pipe has accepted all bytes. eof not 0: closes it
 * afterwards. LODGE_CONFLICT: the command has ended, or has closed its standard input. */
int lodge_exec_write(struct lodge_exec *x, const void *data, size_t len, int eof);

enum lodge_scope {
	LODGE_TO_GROUP, /* its process group */
	LODGE_TO_PROCESS,
	LODGE_TO_TREE, /* everything it started, in any process group */
};
int lodge_exec_signal(struct lodge_exec *x, int signo, enum lodge_scope scope);
/* Kills the command and everything it started. Succeeds if it has ended already. */
int lodge_exec_kill(struct lodge_exec *x);
int lodge_exec_resize(struct lodge_exec *x, uint32_t rows, uint32_t cols);

#ifdef __cplusplus
}
#endif
#endif
