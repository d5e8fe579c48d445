/* SPDX-License-Identifier: Apache-2.0 */
/* One command in a sandbox: started, fed, read from any offset, signalled, waited for.
 *
 * Output lies in one log per stream (a memfd of fixed, sealed size that lodge-init writes as a
 * ring); reading it needs nobody's help and goes on working after the sandbox is gone.
 *
 * A command outlives the engine that started it. lodge-init goes on moving its output, keeps its
 * deadline, and keeps its end and its logs until it is told to forget them, so another engine can
 * take it up with exec_adopt(): complete as long as the output fits into log_bytes, since a
 * reader that died holds nothing back any more. */
#ifndef LODGE_SANDBOX_GUEST_EXEC_H
#define LODGE_SANDBOX_GUEST_EXEC_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/err.h"
#include "wire/agent_proto.h"

struct agent;
struct exec;
struct sandbox;

enum exec_stream { EXEC_OUT, EXEC_ERR };
enum exec_state {
	EXEC_STARTING,
	EXEC_RUNNING,
	EXEC_EXITED, /* exec_result() is final */
	EXEC_FAILED, /* never started, or the sandbox is gone: exec_error() */
};

/* Called from agent_dispatch(); any may be NULL. The exec may be freed inside on_end only. */
struct exec_ops {
	void (*on_started)(struct exec *x, void *arg);
	void (*on_output)(struct exec *x, void *arg); /* exec_end() grew */
	void (*on_end)(struct exec *x, void *arg); /* EXEC_EXITED or EXEC_FAILED, once */
};

struct exec_spec {
	const char *const *argv; /* NULL-terminated; or: */
	const char *text; /* bash text, run as `bash -c TEXT`, by /bin/sh where there is no bash */
	bool or_sh; /* argv is a bash: /bin/sh where there is none, as for text */
	const char *const *env; /* NULL-terminated "K=V", may be NULL */
	const char *cwd; /* NULL: the user's home */
	const char *user; /* NULL: the default one; "name" or "uid[:gid]" */
	uint32_t timeout_ms; /* 0: none; on the whole tree */
	uint64_t log_bytes; /* kept of each stream; 0: 1 MiB */
	bool stdin_open; /* feed it by exec_stdin(); else /dev/null */
	bool merge; /* stderr into stdout's log */
	bool login; /* bash -l */
	bool pty;
	uint32_t rows, cols; /* with pty */
	const char *only; /* what it may execute, as AGENT_ONLY has it; NULL: anything */
	bool only_must; /* not started where the kernel cannot see to it */
	/* A full log waits for exec_consumed(); else the oldest output is dropped and marked. */
	bool hold;
	const struct exec_ops *ops;
	void *arg;
};

struct exec_result {
	int code; /* exit status, or -1 when killed by a signal */
	int signal; /* 0 when it exited */
	unsigned hits; /* enum agent_hit */
	int job_errno; /* of a failed file job */
	uint64_t duration_us, cpu_us, max_rss_bytes;
};

/* Asks for the command and returns at once; the rest comes by agent_dispatch(). */
int exec_begin(struct sandbox *sb, const struct exec_spec *spec, struct exec **ret,
	       struct err *err);
/* Keeps one bash started ahead for text like this: same environment, directory and user, no pty, no
 * input. The next such command does not wait for a shell to start, nor does one after it. */
int exec_arm(struct sandbox *sb, const struct exec_spec *like, struct err *err);
/* The same without waiting for the answer; a refusal is not heard of. */
int exec_arm_begin(struct sandbox *sb, const struct exec_spec *like, struct err *err);
/* A file job (see files.h) in the place of a command: no output, no input. `fd` -1: none. */
int exec_begin_job(struct sandbox *sb, struct agent_job job, const char *user, const char *path,
		   int fd, const struct exec_ops *ops, void *arg, struct exec **ret,
		   struct err *err);
/* Forgets the record in lodge-init when it has ended, else leaves the command running. */
void exec_free(struct exec *x);
DEFINE_AUTO(struct exec *, exec_free);
/* Frees the handle only: an ended command stays in lodge-init's table, to be adopted again. */
void exec_free_keep(struct exec *x);
/* lodge-init may forget an ended command and its logs; those of this handle stay readable. Returns
 * at once. For an engine whose own record of the end is durable now. */
int exec_forget(struct exec *x, struct err *err);

uint64_t exec_id(const struct exec *x);
enum exec_state exec_state(const struct exec *x);
bool exec_was_armed(const struct exec *x); /* it found a shell waiting */
pid_t exec_pid(const struct exec *x); /* as the sandbox sees it; 0 before it started */
const struct exec_result *exec_result(const struct exec *x);
/* With ERR_LIMIT, in the place of an errno: it is the sandbox that has no more of it. */
enum exec_shortage { EXEC_NO_PIDS = ECHILD, EXEC_NO_MEMORY = ENOBUFS };
/* Why: while EXEC_FAILED, or of a file job that ended badly (else code ERR_NONE). sys ENOENT: no
 * such command; EACCES, ENOEXEC: not executable; or an exec_shortage. */
const struct err *exec_error(const struct exec *x);

/* [exec_start_offset, exec_end) of the stream can be read; older output was dropped. */
uint64_t exec_start_offset(const struct exec *x, enum exec_stream s);
uint64_t exec_end(const struct exec *x, enum exec_stream s);
/* Bytes from *offset into buf, up to size. An offset whose bytes were dropped moves on to the
 * oldest that is left. 0: nothing (yet). -errno when the log cannot be read. */
ssize_t exec_read(struct exec *x, enum exec_stream s, uint64_t *offset, void *buf, size_t size);
/* What can be read of an ended command's stream, written to a regular file from its beginning; the
 * file is cut to that. It begins at offset exec_end() - its size, which is exec_start_offset()
 * unless a child that outlived the command went on writing meanwhile. Not synced. Once a command
 * ended this and exec_read() change nothing in x: they need no lock against each other. */
int exec_save(const struct exec *x, enum exec_stream s, int fd, struct err *err);
void exec_hold(struct exec *x); /* as spec.hold, from now on */
/* What the reader no longer needs (with spec.hold). */
int exec_consumed(struct exec *x, uint64_t out, uint64_t err_offset, struct err *err);

/* At most AGENT_DATA_MAX bytes, one call at a time: exec_stdin_is_busy() until taken. */
int exec_stdin(struct exec *x, const void *data, size_t len, bool eof, struct err *err);
bool exec_stdin_is_busy(const struct exec *x);
bool exec_stdin_is_closed(const struct exec *x); /* the command does not read any more */
int exec_signal(struct exec *x, int signo, enum agent_scope scope, struct err *err);
/* ERR_CONFLICT: it has no terminal. */
int exec_resize(struct exec *x, uint32_t rows, uint32_t cols, struct err *err);

/* Borrowed, for loops of one's own; NULL once the sandbox is gone. */
struct agent *exec_agent(const struct exec *x);
const bool *exec_ended(const struct exec *x); /* EXEC_EXITED or EXEC_FAILED */

/* ---- blocking, by poll(2) ------------------------------------------------------------------- */
/* exec_begin() and wait until it runs. */
int exec_start(struct sandbox *sb, const struct exec_spec *spec, struct exec **ret,
	       struct err *err);
/* Takes up a command by its id: one that another engine, or another connection, started, running or
 * ended and not forgotten. It is EXEC_RUNNING or EXEC_EXITED afterwards, and no callback comes for
 * what happened before this returns: look at exec_state() and exec_end(). Everything that was in
 * its logs then can be read; with `hold` (see exec_spec) nothing of it is dropped before
 * exec_consumed(). Input works if it was open; it is busy while bytes of the last engine wait. An
 * ended command whose logs lodge-init gave up (see agent_logs) has no output and AGENT_HIT_OUTPUT.
 * ERR_NOT_FOUND: never there or forgotten; ERR_CONFLICT: there is a handle of it on this
 * connection; ERR_TIMEOUT after 15 s: nothing has changed, it can be tried again. */
int exec_adopt(struct sandbox *sb, uint64_t id, bool hold, const struct exec_ops *ops, void *arg,
	       struct exec **ret, struct err *err);
/* Until it ended; timeout_ms < 0: as long as it takes. ERR_TIMEOUT leaves it running. */
int exec_wait(struct exec *x, int timeout_ms, struct err *err);
/* SIGKILL to everything it started. */
int exec_kill(struct exec *x, struct err *err);

/* Runs to the end and hands out both streams (cut at log_bytes each, the newest kept). `input` may
 * be NULL. */
struct exec_output {
	struct exec_result result;
	char *out, *err; /* the caller's; NUL-terminated for convenience */
	size_t out_len, err_len;
	uint64_t out_total, err_total; /* bytes the command wrote */
};
int exec_run(struct sandbox *sb, const struct exec_spec *spec, const void *input, size_t input_len,
	     struct exec_output *ret, struct err *err);
/* Both streams of an ended exec. */
int exec_collect(struct exec *x, struct exec_output *ret, struct err *err);
void exec_output_fini(struct exec_output *o);

/* "LIMIT_MEMORY" ... of one bit of enum agent_hit; NULL for a bit it does not know. */
const char *exec_hit_name(unsigned hit);

#endif
