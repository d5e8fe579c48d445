/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking calls on commands, by poll(2) around guest_exec.h. */
#ifndef LODGE_SANDBOX_GUEST_EXEC_SYNC_H
#define LODGE_SANDBOX_GUEST_EXEC_SYNC_H

#include "sandbox/guest_exec.h"

/* guest_exec_begin(), then waits until the command runs. */
int guest_exec_start(struct sandbox *sb, const struct guest_exec_spec *spec,
		     struct guest_exec **ret, struct err *err);
/* Waits for the end; timeout_ms < 0: without limit. After ERR_TIMEOUT it keeps running. */
int guest_exec_wait(struct guest_exec *x, int timeout_ms, struct err *err);
/* Kills the command and all its descendants. */
int guest_exec_kill(struct guest_exec *x, struct err *err);

/* Runs a command to its end and returns both streams, the newest log_bytes of each. `input` may be
 * NULL. */
struct guest_exec_output {
	struct guest_exec_result result;
	char *out, *err; /* owned by the caller; NUL-terminated */
	size_t out_len, err_len;
	uint64_t out_total, err_total; /* bytes the command wrote */
};
int guest_exec_run(struct sandbox *sb, const struct guest_exec_spec *spec, const void *input,
		   size_t input_len, struct guest_exec_output *ret, struct err *err);
/* Both streams of an ended exec. */
int guest_exec_collect(struct guest_exec *x, struct guest_exec_output *ret, struct err *err);
void guest_exec_output_fini(struct guest_exec_output *o);

/* Adopts a command by its id that another engine or connection started: running, or ended and not
 * forgotten. Afterwards it is GUEST_EXEC_RUNNING or GUEST_EXEC_EXITED. Callbacks report only what
 * happens later: check guest_exec_state() and guest_exec_end(). All output in its logs can be read;
 * with `hold` (see guest_exec_spec) none of it is dropped before guest_exec_consumed(). Input works
 * if it was open; it is busy while input of the previous engine is queued. If lodge-init dropped
 * the logs of an ended command (see agent_logs), it has no output and AGENT_HIT_OUTPUT.
 * ERR_NOT_FOUND: unknown or forgotten; ERR_CONFLICT: this connection already has a handle of it;
 * ERR_TIMEOUT after 15 s: nothing changed, retry. */
int guest_exec_adopt(struct sandbox *sb, uint64_t id, bool hold, const struct guest_exec_ops *ops,
		     void *arg, struct guest_exec **ret, struct err *err);

#endif
