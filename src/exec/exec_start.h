/* SPDX-License-Identifier: Apache-2.0 */
/* Execs of a session. An exec does not depend on any connection: it keeps running when its
 * caller disconnects and when the engine restarts. Its output is in a log that is read by
 * offset, and stays readable for a while after the sandbox is gone. */
#ifndef LODGE_EXEC_EXEC_START_H
#define LODGE_EXEC_EXEC_START_H

#include "engine/engine.h"
#include "machine/exec.h"

struct policy_refusal;

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
 * not be started. A program that is not found or cannot be executed is no error: the exec has
 * ended with status 127 or 126, and its stderr says why. */
int exec_start(struct engine *e, const struct caller *caller, const struct session_ref *ref,
	       const struct exec_opts *opts, struct exec_handle **ret,
	       enum session_outcome *ret_outcome, struct err *err);

#endif
