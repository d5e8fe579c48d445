/* SPDX-License-Identifier: Apache-2.0 */
/* Execs of a session. An exec does not depend on any connection: it keeps running when its
 * caller disconnects and when the engine restarts. Its output is in a log that is read by
 * offset, and stays readable for a while after the sandbox is gone. */
#ifndef LODGE_MACHINE_EXEC_H
#define LODGE_MACHINE_EXEC_H

#include "engine/engine.h"
#include "sandbox/guest_exec.h"
#include "sandbox/guest_exec_sync.h"

struct policy_refusal;

struct exec_handle; /* a handle, counted */

enum exec_state { /* numbers are in the store */
		  EXEC_RUNNING,
		  EXEC_EXITED,
		  EXEC_KILLED, /* by a signal, a timeout, or with its sandbox */
		  EXEC_LOST, /* its end is unknown */
};

struct exec_opts {
	const char *const *argv; /* NULL-terminated; or: */
	const char *text; /* bash text */
	const char *const *env; /* over the session's */
	const char *cwd, *user; /* NULL: the session's */
	uint32_t timeout_ms; /* 0: none */
	uint64_t output_bytes; /* kept of each stream; 0: the session's limit, or 1 MiB */
	bool background; /* only noted in the record: no caller waits for it */
	bool stdin_open, merge, login, pty;
	uint32_t rows, cols;
	bool hold_output; /* a full log waits for the reader of this handle */
	const char *idempotency_key;
	bool must_exist; /* start nothing: ERR_NOT_FOUND if the idempotency key was not used before
			  */
	bool no_resume; /* ERR_CONFLICT if the session is hibernated */
	bool interactive_shell; /* argv is a bash for a person to type into: its commands are not
				   known, so a policy allows it only where the kernel enforces the
				   policy */
	struct policy_refusal *refusal; /* what a policy refused, in parts; may be NULL */
};

/* Starts an exec, and resumes the session if it is hibernated (*ret_outcome, may be NULL). With
 * an idempotency key that was used before: a handle on that exec. Returns when it runs or could
 * not be started. */
int exec_start(struct engine *e, const struct caller *caller, const struct session_ref *ref,
	       const struct exec_opts *opts, struct exec_handle **ret,
	       enum session_outcome *ret_outcome, struct err *err);
/* One that was started before, by whichever engine; also one that ended long ago. */
int exec_open(struct engine *e, const struct caller *caller, const char *exec_id,
	      struct exec_handle **ret, struct err *err);
void exec_close(struct exec_handle *x); /* the exec keeps running; NULL is allowed */
DEFINE_AUTO(struct exec_handle *, exec_close);

/* The record now; *ret is for store_exec_fini(). */
int exec_get_info(struct exec_handle *x, struct store_exec *ret, struct err *err);
const char *exec_get_id(const struct exec_handle *x);
/* Until it ended; timeout_ms < 0: as long as it takes. ERR_TIMEOUT leaves it running. */
int exec_wait(struct exec_handle *x, int64_t timeout_ms, struct err *err);
bool exec_has_ended(struct exec_handle *x);

/* [*ret_start, *ret_end) of the stream can be read. */
void exec_output_range(struct exec_handle *x, enum guest_exec_stream s, uint64_t *ret_start,
		       uint64_t *ret_end);
/* Reads bytes from `offset`, and waits up to wait_ms for the first. 0: none (yet, or no more
 * when exec_has_ended()). An offset that is no longer retained is ERR_LIMIT with sys ERANGE. */
int exec_read(struct exec_handle *x, enum guest_exec_stream s, uint64_t offset, void *buf,
	      size_t size, int64_t wait_ms, size_t *ret, struct err *err);
/* From now on a full log also waits for the reader of this handle, which has read up to these
 * offsets. UINT64_MAX: not in this stream; in both: no longer. Bytes that were dropped before
 * stay lost. */
void exec_hold_output(struct exec_handle *x, uint64_t out, uint64_t err_offset);
int exec_consumed(struct exec_handle *x, uint64_t out, uint64_t err_offset, struct err *err);
/* Waits until there is more than these offsets, it ended, or the time is over. */
int exec_wait_output(struct exec_handle *x, uint64_t out, uint64_t err_offset, int64_t wait_ms);
/* fn(arg) from another thread whenever output or the end came; NULL: no more. Must not block nor
 * call back into the engine. */
void exec_notify(struct exec_handle *x, void (*fn)(void *arg), void *arg);

/* Waits until the process has read all of it. */
int exec_write_stdin(struct exec_handle *x, const void *data, size_t len, bool eof,
		     struct err *err);
/* Asked now and then while exec_write_stdin() waits: true ends it with ERR_UNAVAILABLE. Must not
 * block nor call back into the engine. */
void exec_set_cancel(struct exec_handle *x, bool (*fn)(void *arg), void *arg);
/* exec_write_stdin() as the first input, unless an earlier use of the idempotency key fed it. An
 * exec that does not read all of it is no error. */
int exec_feed_stdin(struct exec_handle *x, const void *input, size_t len, bool eof,
		    struct err *err);
/* Without waiting: *ret bytes were accepted. 0: the earlier ones are still in flight. There is
 * no notification, so try again after a moment. */
int exec_offer_stdin(struct exec_handle *x, const void *data, size_t len, size_t *ret,
		     struct err *err);
int exec_signal(struct exec_handle *x, int signo, enum agent_scope scope, struct err *err);
int exec_resize(struct exec_handle *x, uint32_t rows, uint32_t cols, struct err *err);

int exec_list(struct engine *e, const struct caller *caller, const struct session_ref *session,
	      struct store_page page, struct store_exec_list *ret, struct err *err);

/* exec_feed_stdin() with `input` (NULL: nothing), then waits for its end and hands out both
 * streams. */
int exec_finish(struct exec_handle *x, const void *input, size_t input_len,
		struct guest_exec_output *ret, struct err *err);
/* exec_start() and exec_finish(); `input` may be NULL. */
int exec_run(struct engine *e, const struct caller *caller, const struct session_ref *ref,
	     const struct exec_opts *opts, const void *input, size_t input_len,
	     struct guest_exec_output *ret, struct err *err);

#endif
