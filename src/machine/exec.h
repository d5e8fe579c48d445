/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a session. A command's life has nothing to do with any connection: it goes on when
 * its caller vanishes and when the engine restarts; its output lies in a log that is read by
 * offset, and stays readable for a while after the sandbox is gone. */
#ifndef LODGE_MACHINE_EXEC_H
#define LODGE_MACHINE_EXEC_H

#include "engine/engine.h"
#include "sandbox/guest_exec.h"

struct policy_refusal;

struct run; /* a handle, counted */

enum run_state { /* numbers are in the store */
		 RUN_RUNNING,
		 RUN_EXITED,
		 RUN_KILLED, /* by a signal, a timeout, or with its sandbox */
		 RUN_LOST, /* nobody knows how it ended */
};

struct run_want {
	const char *const *argv; /* NULL-terminated; or: */
	const char *text; /* bash text */
	const char *const *env; /* over the session's */
	const char *cwd, *user; /* NULL: the session's */
	uint32_t timeout_ms; /* 0: none */
	uint64_t output_bytes; /* kept of each stream; 0: the session's limit, or 1 MiB */
	bool background; /* nobody waits for it; only told in the record */
	bool stdin_open, merge, login, pty;
	uint32_t rows, cols;
	bool hold; /* a full log waits for the reader of this handle */
	const char *once; /* idempotency key */
	bool again; /* it was used before: ERR_NOT_FOUND, and nothing is started, if it was not */
	bool no_resume; /* ERR_CONFLICT if the session sleeps */
	bool own_shell; /* argv is a bash for somebody to type into: no text tells what it will
			   start, so a policy allows it where the kernel sees to it */
	struct policy_refusal *refusal; /* what a policy refused, in parts; may be NULL */
};

/* Starts it, resuming the session if it sleeps (*ret_outcome, may be NULL). With a `once` that was
 * used before: that one's handle. Returns when the command runs or could not be started. */
int run_start(struct engine *e, const struct caller *who, const struct session_ref *ref,
	      const struct run_want *want, struct run **ret, enum session_outcome *ret_outcome,
	      struct err *err);
/* One that was started before, by whichever engine; also one that ended long ago. */
int run_open(struct engine *e, const struct caller *who, const char *exec_id, struct run **ret,
	     struct err *err);
void run_close(struct run *x); /* the command goes on; NULL is allowed */
DEFINE_AUTO(struct run *, run_close);

/* The record now; *ret is for store_exec_fini(). */
int run_info(struct run *x, struct store_exec *ret, struct err *err);
const char *run_id(const struct run *x);
/* Until it ended; timeout_ms < 0: as long as it takes. ERR_TIMEOUT leaves it running. */
int run_wait(struct run *x, int64_t timeout_ms, struct err *err);
bool run_ended(struct run *x);

/* [*ret_start, *ret_end) of the stream can be read. */
void run_range(struct run *x, enum exec_stream s, uint64_t *ret_start, uint64_t *ret_end);
/* Bytes from `offset` on, waiting up to wait_ms for the first. 0: none (yet, or no more when
 * run_ended()). An offset that is not kept any more is ERR_LIMIT with sys ERANGE. */
int run_read(struct run *x, enum exec_stream s, uint64_t offset, void *buf, size_t size,
	     int64_t wait_ms, size_t *ret, struct err *err);
/* From now on a full log waits for the reader of this handle too, who has read so far. UINT64_MAX:
 * not in this stream; in both: not any more. What was dropped before is not brought back. */
void run_hold(struct run *x, uint64_t out, uint64_t err_offset);
int run_consumed(struct run *x, uint64_t out, uint64_t err_offset, struct err *err);
/* Waits until there is more than these offsets, it ended, or the time is over. */
int run_wait_output(struct run *x, uint64_t out, uint64_t err_offset, int64_t wait_ms);
/* fn(arg) from another thread whenever output or the end came; NULL: no more. Must not block nor
 * call back into the engine. */
void run_notify(struct run *x, void (*fn)(void *arg), void *arg);

/* Waits until the command took all of it. */
int run_stdin(struct run *x, const void *data, size_t len, bool eof, struct err *err);
/* Asked now and then while run_stdin() waits: true ends it with ERR_UNAVAILABLE. Must not block nor
 * call back into the engine. */
void run_give_up(struct run *x, bool (*fn)(void *arg), void *arg);
/* run_stdin() as the first input of the command, unless an earlier use of its `once` fed it. One
 * that does not read all of it is not wrong. */
int run_feed(struct run *x, const void *input, size_t len, bool eof, struct err *err);
/* Without waiting: *ret bytes of it were given. 0: the last ones were not taken yet; nobody tells
 * when they are, so try again after a moment. */
int run_offer(struct run *x, const void *data, size_t len, size_t *ret, struct err *err);
int run_signal(struct run *x, int signo, enum agent_scope scope, struct err *err);
int run_resize(struct run *x, uint32_t rows, uint32_t cols, struct err *err);

int run_list(struct engine *e, const struct caller *who, const struct session_ref *session,
	     struct store_page page, struct store_exec_list *ret, struct err *err);

/* run_feed() with `input` (NULL: nothing), then waits for its end and hands out both streams. */
int run_finish(struct run *x, const void *input, size_t input_len, struct exec_output *ret,
	       struct err *err);
/* run_start() and run_finish(); `input` may be NULL. */
int run_all(struct engine *e, const struct caller *who, const struct session_ref *ref,
	    const struct run_want *want, const void *input, size_t input_len,
	    struct exec_output *ret, struct err *err);

#endif
