/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's end of lodge-init's socket. lodge-init is the guest's neighbour: whatever comes is
 * checked (agent_msg_problem, descriptors by fstat and their seals), and the first nonsense ends
 * the connection.
 * Not thread-safe: one loop owns it. */
#ifndef LODGE_SANDBOX_AGENT_CLIENT_H
#define LODGE_SANDBOX_AGENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"
#include "wire/agent_proto.h"

struct agent;

/* One answer. `msg` is the whole validated message (header included), or NULL when the connection
 * ended or lodge-init refused: then `err` is set. `fds` are AGENT_REPLY_FDS descriptors, -1 where
 * none came: what the callee does not take by steal_fd() is closed. */
typedef void agent_fn(void *arg, const void *msg, size_t len, int *fds, const struct err *err);

/* An event of one exec (AGENT_OUTPUT or AGENT_EXIT); msg NULL: the connection ended. */
typedef void agent_event_fn(void *arg, const void *msg, const struct err *err);

/* Takes over the connected socket, also on failure. */
int agent_new(int fd, struct agent **ret, struct err *err);
/* Callbacks still waiting are called with an error. NULL is allowed. */
void agent_free(struct agent *a);
DEFINE_AUTO(struct agent *, agent_free);

int agent_fd(const struct agent *a);
/* What to poll agent_fd() for: POLLIN, and POLLOUT while messages wait to be sent. */
short agent_events(const struct agent *a);
/* Sends what waits, reads what is there, calls callbacks. -1: the connection is over. */
int agent_dispatch(struct agent *a, struct err *err);
bool agent_is_closed(const struct agent *a);

struct agent_part {
	const void *data;
	size_t len;
};

/* Sends hdr + parts with up to AGENT_FDS_MAX fds (borrowed: duplicated if they have to wait).
 * `fn` is called exactly once unless -1 is returned; NULL: nobody cares for the answer. */
int agent_send(struct agent *a, enum agent_type type, const struct agent_part *parts, size_t nparts,
	       const int *fds, size_t nfds, agent_fn *fn, void *arg, struct err *err);

/* Answers that would go to `arg` are thrown away from now on: its owner is going. */
void agent_cancel(struct agent *a, const void *arg);

/* A number for AGENT_EXEC and AGENT_JOB, never used before in this sandbox as long as only one
 * connection numbers from 0 and every other one from a base of its own. */
uint64_t agent_next_exec(struct agent *a);
/* The numbers that agent_next_exec() gives are above `base` from now on; never lower than before.
 * A connection beside the main one takes agent_side_base() of a random number. */
void agent_number_from(struct agent *a, uint64_t base);
static inline uint64_t agent_side_base(uint32_t random)
{
	return (random % INT32_MAX + 1ull) * AGENT_SIDE_EXEC;
}
/* Events of `exec` go to fn until agent_unlisten(); agent_free() tells listeners too. ERR_CONFLICT
 * if somebody listens to it already. */
int agent_listen(struct agent *a, uint64_t exec, agent_event_fn *fn, void *arg, struct err *err);
void agent_unlisten(struct agent *a, uint64_t exec);

/* ---- blocking, by poll(2) on the above ------------------------------------------------------ */
/* One round: waits for something to happen (timeout_ms < 0: as long as it takes), dispatches. */
int agent_step(struct agent *a, int timeout_ms, struct err *err);
/* Dispatches until *done, timeout_ms (< 0: none) or the end of the connection. */
int agent_wait(struct agent *a, const bool *done, int timeout_ms, struct err *err);

struct agent_reply {
	int fd; /* -1 or the caller's */
	size_t len;
	void *msg; /* the caller's: free() */
};
/* Sends and waits for the answer of type `want` (another type is an error). ret may be NULL. */
int agent_call(struct agent *a, enum agent_type type, const struct agent_part *parts, size_t nparts,
	       const int *fds, size_t nfds, enum agent_type want, struct agent_reply *ret,
	       struct err *err);
void agent_reply_fini(struct agent_reply *ans);
/* How long agent_call() waits for each answer: ERR_TIMEOUT then. < 0, as at first: as long as it
 * takes. */
void agent_set_timeout(struct agent *a, int ms);
int agent_timeout(const struct agent *a);

/* Asks lodge-init who it is; needed once after connecting to a sandbox that already ran. Numbers
 * go on above hello.last_exec, in which those of side connections do not count. */
int agent_hello(struct agent *a, struct agent_hello *ret, struct err *err);

/* Every record lodge-init has, running and ended, of this and of every other connection. fn is
 * called after the last answer came, so it may use the connection; anything but 0 ends the walk
 * and is returned. ERR_TIMEOUT after 15 s. */
typedef int agent_proc_fn(void *arg, const struct agent_proc *p);
int agent_list(struct agent *a, agent_proc_fn *fn, void *arg, struct err *err);

/* A sandbox's words may end up on a terminal: no control characters. */
void agent_clean_text(char *text);

#endif
