/* SPDX-License-Identifier: Apache-2.0 */
/* One command in a sandbox: started, fed, read from any offset, signalled, waited for.
 * Output is in one log per stream, a memfd of fixed, sealed size that lodge-init writes as a ring.
 * Reading it needs no other process and works after the sandbox is gone.
 * A command outlives the engine that started it. lodge-init moves its output, enforces its
 * deadline, and keeps its result and logs until AGENT_FORGET, so that another engine can adopt it
 * with guest_exec_adopt(). Its output is complete if it fits into log_bytes: a reader that died no
 * longer blocks the command. */
#ifndef LODGE_SANDBOX_GUEST_EXEC_H
#define LODGE_SANDBOX_GUEST_EXEC_H

#include <errno.h>
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
	GUEST_EXEC_FAILED, /* not started, or the sandbox is gone: see guest_exec_error() */
};

/* Called from agent_dispatch(); any may be NULL. The exec may be freed inside on_end only. */
struct guest_exec_ops {
	void (*on_started)(struct guest_exec *x, void *arg);
	void (*on_output)(struct guest_exec *x, void *arg); /* guest_exec_end() grew */
	void (*on_end)(struct guest_exec *x, void *arg); /* EXITED or FAILED, once */
};

struct guest_exec_spec {
	const char *const *argv; /* NULL-terminated; or text: */
	const char *text; /* run as `bash -c TEXT`, or with /bin/sh if there is no bash */
	bool or_sh; /* argv[0] is bash: use /bin/sh if there is none, as for text */
	const char *const *env; /* NULL-terminated "K=V", may be NULL */
	const char *cwd; /* NULL: the user's home */
	const char *user; /* NULL: the default one; "name" or "uid[:gid]" */
	uint32_t timeout_ms; /* for all descendants; 0: none */
	uint64_t log_bytes; /* retained per stream; 0: 1 MiB */
	bool stdin_open; /* written by guest_exec_stdin(); else /dev/null */
	bool merge; /* stderr into stdout's log */
	bool login; /* bash -l */
	bool pty;
	uint32_t rows, cols; /* with pty */
	const char *landlock; /* programs it may execute, as in AGENT_LANDLOCK; NULL: any */
	bool landlock_required; /* fail if the kernel has no Landlock */
	/* The command blocks on a full log until guest_exec_consumed(); else the oldest output is
	 * dropped and AGENT_HIT_OUTPUT is set. */
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

/* Sends the command and returns; agent_dispatch() delivers the rest. */
int guest_exec_begin(struct sandbox *sb, const struct guest_exec_spec *spec,
		     struct guest_exec **ret, struct err *err);
/* Keeps a spare shell for text like this: same environment, directory and user, no pty, no input.
 * Later commands of that kind do not wait for a shell to start. Does not wait for the reply, and
 * ignores errors of lodge-init. */
int guest_exec_set_spare_shell(struct sandbox *sb, const struct guest_exec_spec *like,
			       struct err *err);
/* A file job (see files_stream.h) instead of a command: no output, no input. `fd` -1: none. */
int guest_exec_begin_job(struct sandbox *sb, struct agent_job job, const char *user,
			 const char *path, int fd, const struct guest_exec_ops *ops, void *arg,
			 struct guest_exec **ret, struct err *err);
/* Frees the handle. Forgets the record in lodge-init if the command has ended; a running command
 * continues. */
void guest_exec_free(struct guest_exec *x);
DEFINE_AUTO(struct guest_exec *, guest_exec_free);
/* Frees only the handle: lodge-init keeps the record of an ended command, to be adopted again. */
void guest_exec_free_keep(struct guest_exec *x);
/* Lets lodge-init drop the record and logs of an ended command; the logs of this handle stay
 * readable. Does not wait. Call it when the engine's own record of the result is durable. */
int guest_exec_forget(struct guest_exec *x, struct err *err);

uint64_t guest_exec_id(const struct guest_exec *x);
enum guest_exec_state guest_exec_state(const struct guest_exec *x);
/* In the sandbox's PID namespace; 0 before it started. */
pid_t guest_exec_pid(const struct guest_exec *x);
const struct guest_exec_result *guest_exec_result(const struct guest_exec *x);
/* With ERR_LIMIT, instead of an errno: the sandbox reached its own limit. */
enum guest_exec_shortage {
	GUEST_EXEC_NO_PIDS = ECHILD,
	GUEST_EXEC_NO_MEMORY = ENOBUFS,
	GUEST_EXEC_NO_OUTPUT = AGENT_NO_OUTPUT,
};
/* The reason of GUEST_EXEC_FAILED or of a failed file job, else code ERR_NONE. sys ENOENT: command
 * not found; EACCES, ENOEXEC: not executable; or an enum guest_exec_shortage. */
const struct err *guest_exec_error(const struct guest_exec *x);

void guest_exec_hold(struct guest_exec *x); /* sets spec.hold from now on */
/* Releases output that the reader no longer needs (with spec.hold). */
int guest_exec_consumed(struct guest_exec *x, uint64_t out, uint64_t err_offset, struct err *err);

/* At most AGENT_DATA_MAX bytes, one write at a time: guest_exec_stdin_is_busy() until the command's
 * pipe took them. */
int guest_exec_stdin(struct guest_exec *x, const void *data, size_t len, bool eof, struct err *err);
bool guest_exec_stdin_is_busy(const struct guest_exec *x);
bool guest_exec_stdin_is_closed(const struct guest_exec *x);
int guest_exec_signal(struct guest_exec *x, int signo, enum agent_scope scope, struct err *err);
/* ERR_CONFLICT: it has no terminal. */
int guest_exec_resize(struct guest_exec *x, uint32_t rows, uint32_t cols, struct err *err);

/* Borrowed, for a loop of the caller; NULL once the sandbox is gone. */
struct agent *guest_exec_agent(const struct guest_exec *x);
const bool *guest_exec_ended(const struct guest_exec *x); /* EXITED or FAILED */

/* "LIMIT_MEMORY" ... for one bit of enum agent_hit; NULL for an unknown bit. */
const char *guest_exec_hit_name(unsigned hit);

/* ---- for guest_exec_*.c ---------------------------------------------------------------------- */

/* A handle that listens for events of `id`. Sends nothing. */
int guest_exec_alloc(struct sandbox *sb, uint64_t id, const struct guest_exec_ops *ops, void *arg,
		     struct guest_exec **ret, struct err *err);
/* Ends the exec with this result; `text` may be NULL. */
void guest_exec_set_result(struct guest_exec *x, const struct agent_exit *e, const char *text);
/* Updates the ranges of the logs. False if they are invalid. */
bool guest_exec_advance(struct guest_exec *x, const struct agent_progress *p);
/* Sends an empty write, whose reply comes when all input sent before is written. */
int guest_exec_probe_stdin(struct guest_exec *x, struct err *err);

#endif
