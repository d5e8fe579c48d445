/* SPDX-License-Identifier: Apache-2.0 */
/* One command in a sandbox: started, fed, read from any offset, signalled, waited for.
 *
 * Output lies in one log per stream (a memfd of fixed, sealed size that lodge-init writes as a
 * ring); reading it needs nobody's help and goes on working after the sandbox is gone.
 *
 * A command outlives the engine that started it. lodge-init goes on moving its output, keeps its
 * deadline, and keeps its end and its logs until it is told to forget them, so another engine can
 * take it up with guest_exec_adopt(): complete as long as the output fits into log_bytes, since a
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
struct guest_exec;
struct sandbox;

enum guest_exec_stream { GUEST_EXEC_OUT, GUEST_EXEC_ERR };
enum guest_exec_state {
	GUEST_EXEC_STARTING,
	GUEST_EXEC_RUNNING,
	GUEST_EXEC_EXITED, /* guest_exec_result() is final */
	GUEST_EXEC_FAILED, /* never started, or the sandbox is gone: guest_exec_error() */
};

/* Called from agent_dispatch(); any may be NULL. The exec may be freed inside on_end only. */
struct guest_exec_ops {
	void (*on_started)(struct guest_exec *x, void *arg);
	void (*on_output)(struct guest_exec *x, void *arg); /* guest_exec_end() grew */
	void (*on_end)(struct guest_exec *x,
		       void *arg); /* GUEST_EXEC_EXITED or GUEST_EXEC_FAILED, once */
};

struct guest_exec_spec {
	const char *const *argv; /* NULL-terminated; or: */
	const char *text; /* bash text, run as `bash -c TEXT`, by /bin/sh where there is no bash */
	bool or_sh; /* argv is a bash: /bin/sh where there is none, as for text */
	const char *const *env; /* NULL-terminated "K=V", may be NULL */
	const char *cwd; /* NULL: the user's home */
	const char *user; /* NULL: the default one; "name" or "uid[:gid]" */
	uint32_t timeout_ms; /* 0: none; on the whole tree */
	uint64_t log_bytes; /* kept of each stream; 0: 1 MiB */
	bool stdin_open; /* feed it by guest_exec_stdin(); else /dev/null */
	bool merge; /* stderr into stdout's log */
	bool login; /* bash -l */
	bool pty;
	uint32_t rows, cols; /* with pty */
	const char *landlock; /* what it may execute, as AGENT_LANDLOCK has it; NULL: anything */
	bool landlock_required; /* not started where the kernel cannot see to it */
	/* A full log waits for guest_exec_consumed(); else the oldest output is dropped and marked.
	 */
	bool hold;
	const struct guest_exec_ops *ops;
	void *arg;
};

struct guest_exec_result {
	int code; /* exit status, or -1 when killed by a signal */
	int signal; /* 0 when it exited */
	unsigned hits; /* enum agent_hit */
	int job_errno; /* of a failed file job */
	uint64_t duration_us, cpu_us, max_rss_bytes;
};

/* Asks for the command and returns at once; the rest comes by agent_dispatch(). */
int guest_exec_begin(struct sandbox *sb, const struct guest_exec_spec *spec,
		     struct guest_exec **ret, struct err *err);
/* Keeps one bash started ahead for text like this: same environment, directory and user, no pty, no
 * input. The next such command does not wait for a shell to start, nor does one after it. */
int guest_exec_set_spare_shell(struct sandbox *sb, const struct guest_exec_spec *like,
			       struct err *err);
/* The same without waiting for the answer; a refusal is not heard of. */
int guest_exec_set_spare_shell_async(struct sandbox *sb, const struct guest_exec_spec *like,
				     struct err *err);
/* A file job (see files.h) in the place of a command: no output, no input. `fd` -1: none. */
int guest_exec_begin_job(struct sandbox *sb, struct agent_job job, const char *user,
			 const char *path, int fd, const struct guest_exec_ops *ops, void *arg,
			 struct guest_exec **ret, struct err *err);
/* Forgets the record in lodge-init when it has ended, else leaves the command running. */
void guest_exec_free(struct guest_exec *x);
DEFINE_AUTO(struct guest_exec *, guest_exec_free);
/* Frees the handle only: an ended command stays in lodge-init's table, to be adopted again. */
void guest_exec_free_keep(struct guest_exec *x);
/* lodge-init may forget an ended command and its logs; those of this handle stay readable. Returns
 * at once. For an engine whose own record of the end is durable now. */
int guest_exec_forget(struct guest_exec *x, struct err *err);

uint64_t guest_exec_id(const struct guest_exec *x);
enum guest_exec_state guest_exec_state(const struct guest_exec *x);
bool guest_exec_used_spare_shell(const struct guest_exec *x); /* it found a shell waiting */
pid_t guest_exec_pid(const struct guest_exec *x); /* as the sandbox sees it; 0 before it started */
const struct guest_exec_result *guest_exec_result(const struct guest_exec *x);
/* With ERR_LIMIT, in the place of an errno: it is the sandbox that has no more of it. */
enum guest_exec_shortage { GUEST_EXEC_NO_PIDS = ECHILD, GUEST_EXEC_NO_MEMORY = ENOBUFS };
/* Why: while GUEST_EXEC_FAILED, or of a file job that ended badly (else code ERR_NONE). sys ENOENT:
 * no such command; EACCES, ENOEXEC: not executable; or an exec_shortage. */
const struct err *guest_exec_error(const struct guest_exec *x);

/* [guest_exec_start_offset, guest_exec_end) of the stream can be read; older output was dropped. */
uint64_t guest_exec_start_offset(const struct guest_exec *x, enum guest_exec_stream s);
uint64_t guest_exec_end(const struct guest_exec *x, enum guest_exec_stream s);
/* Bytes from *offset into buf, up to size. An offset whose bytes were dropped moves on to the
 * oldest that is left. 0: nothing (yet). -errno when the log cannot be read. */
ssize_t guest_exec_read(struct guest_exec *x, enum guest_exec_stream s, uint64_t *offset, void *buf,
			size_t size);
/* What can be read of an ended command's stream, written to a regular file from its beginning; the
 * file is cut to that. It begins at offset guest_exec_end() - its size, which is
 * guest_exec_start_offset() unless a child that outlived the command went on writing meanwhile. Not
 * synced. Once a command ended this and guest_exec_read() change nothing in x: they need no lock
 * against each other. */
int guest_exec_save(const struct guest_exec *x, enum guest_exec_stream s, int fd, struct err *err);
void guest_exec_hold(struct guest_exec *x); /* as spec.hold, from now on */
/* What the reader no longer needs (with spec.hold). */
int guest_exec_consumed(struct guest_exec *x, uint64_t out, uint64_t err_offset, struct err *err);

/* At most AGENT_DATA_MAX bytes, one call at a time: guest_exec_stdin_is_busy() until taken. */
int guest_exec_stdin(struct guest_exec *x, const void *data, size_t len, bool eof, struct err *err);
bool guest_exec_stdin_is_busy(const struct guest_exec *x);
bool guest_exec_stdin_is_closed(
	const struct guest_exec *x); /* the command does not read any more */
int guest_exec_signal(struct guest_exec *x, int signo, enum agent_scope scope, struct err *err);
/* ERR_CONFLICT: it has no terminal. */
int guest_exec_resize(struct guest_exec *x, uint32_t rows, uint32_t cols, struct err *err);

/* Borrowed, for loops of one's own; NULL once the sandbox is gone. */
struct agent *guest_exec_agent(const struct guest_exec *x);
const bool *
guest_exec_ended(const struct guest_exec *x); /* GUEST_EXEC_EXITED or GUEST_EXEC_FAILED */

/* ---- blocking, by poll(2) ------------------------------------------------------------------- */
/* guest_exec_begin() and wait until it runs. */
int guest_exec_start(struct sandbox *sb, const struct guest_exec_spec *spec,
		     struct guest_exec **ret, struct err *err);
/* Takes up a command by its id: one that another engine, or another connection, started, running or
 * ended and not forgotten. It is GUEST_EXEC_RUNNING or GUEST_EXEC_EXITED afterwards, and no
 * callback comes for what happened before this returns: look at guest_exec_state() and
 * guest_exec_end(). Everything that was in its logs then can be read; with `hold` (see exec_spec)
 * nothing of it is dropped before guest_exec_consumed(). Input works if it was open; it is busy
 * while bytes of the last engine wait. An ended command whose logs lodge-init gave up (see
 * agent_logs) has no output and AGENT_HIT_OUTPUT. ERR_NOT_FOUND: never there or forgotten;
 * ERR_CONFLICT: there is a handle of it on this connection; ERR_TIMEOUT after 15 s: nothing has
 * changed, it can be tried again. */
int guest_exec_adopt(struct sandbox *sb, uint64_t id, bool hold, const struct guest_exec_ops *ops,
		     void *arg, struct guest_exec **ret, struct err *err);
/* Until it ended; timeout_ms < 0: as long as it takes. ERR_TIMEOUT leaves it running. */
int guest_exec_wait(struct guest_exec *x, int timeout_ms, struct err *err);
/* SIGKILL to everything it started. */
int guest_exec_kill(struct guest_exec *x, struct err *err);

/* Runs to the end and hands out both streams (cut at log_bytes each, the newest kept). `input` may
 * be NULL. */
struct guest_exec_output {
	struct guest_exec_result result;
	char *out, *err; /* the caller's; NUL-terminated for convenience */
	size_t out_len, err_len;
	uint64_t out_total, err_total; /* bytes the command wrote */
};
int guest_exec_run(struct sandbox *sb, const struct guest_exec_spec *spec, const void *input,
		   size_t input_len, struct guest_exec_output *ret, struct err *err);
/* Both streams of an ended exec. */
int guest_exec_collect(struct guest_exec *x, struct guest_exec_output *ret, struct err *err);
void guest_exec_output_fini(struct guest_exec_output *o);

/* "LIMIT_MEMORY" ... of one bit of enum agent_hit; NULL for a bit it does not know. */
const char *guest_exec_hit_name(unsigned hit);

#endif
