/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking calls to lodge-init, by poll(2) around agent_client.h. */
#ifndef LODGE_SANDBOX_AGENT_SYNC_H
#define LODGE_SANDBOX_AGENT_SYNC_H

#include "sandbox/agent_client.h"

/* Waits for one event (timeout_ms < 0: without limit) and dispatches. */
int agent_step(struct agent *a, int timeout_ms, struct err *err);
/* Dispatches until *done, timeout_ms (< 0: none) or the end of the connection. */
int agent_wait(struct agent *a, const bool *done, int timeout_ms, struct err *err);

struct agent_reply {
	int fd; /* -1, or owned by the caller */
	size_t len;
	void *msg; /* owned by the caller: free() */
};
/* Sends and waits for a reply of type `expected` (another type is an error). ret may be NULL. */
int agent_call(struct agent *a, enum agent_type type, const struct agent_part *parts, size_t nparts,
	       const int *fds, size_t nfds, enum agent_type want, struct agent_reply *ret,
	       struct err *err);
void agent_reply_fini(struct agent_reply *ans);
/* Needed once after connecting to a sandbox that is already running. Ids continue above
 * hello.last_exec, which does not count those of side connections. */
int agent_hello(struct agent *a, struct agent_hello *ret, struct err *err);

/* Every record of lodge-init, running and ended, of all connections. fn is called after the last
 * reply arrived, so it may use the connection; a result other than 0 ends the loop and is returned.
 * ERR_TIMEOUT after 15 s. */
typedef int agent_proc_fn(void *arg, const struct agent_proc *p);
int agent_list(struct agent *a, agent_proc_fn *fn, void *arg, struct err *err);

#endif
