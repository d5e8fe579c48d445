/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's end of the connection to lodge-init. lodge-init runs next to the guest, so every
 * message is checked (agent_msg_problem(), descriptors by fstat() and their seals), and the first
 * invalid one ends the connection.
 * Not thread-safe: one loop owns it. */
#ifndef LODGE_SANDBOX_AGENT_CLIENT_H
#define LODGE_SANDBOX_AGENT_CLIENT_H

#include "base/auto.h"
#include "base/err.h"
#include "wire/agent_proto.h"

struct agent;

/* One reply. `msg` is the whole validated message with its header, or NULL if the connection ended
 * or lodge-init refused: then `err` is set. `fds` are AGENT_REPLY_FDS descriptors or -1; those that
 * the callee does not take with steal_fd() are closed. */
typedef void agent_fn(void *arg, const void *msg, size_t len, int *fds, const struct err *err);

/* An event of one exec (AGENT_OUTPUT or AGENT_EXIT); msg NULL: the connection ended. */
typedef void agent_event_fn(void *arg, const void *msg, const struct err *err);

/* Takes ownership of the connected socket, also on failure. */
int agent_new(int fd, struct agent **ret, struct err *err);
/* Calls pending callbacks with an error. NULL is allowed. */
void agent_free(struct agent *a);
DEFINE_AUTO(struct agent *, agent_free);

int agent_fd(const struct agent *a);
/* Events to poll agent_fd() for: POLLIN, and POLLOUT while messages are queued. */
short agent_events(const struct agent *a);
/* Sends queued messages, reads available ones, calls callbacks. -1: the connection ended. */
int agent_dispatch(struct agent *a, struct err *err);
bool agent_is_closed(const struct agent *a);
/* Ends the connection for the reason `why`, a constant: agent_dispatch() of the thread that owns it
 * fails from now on. The only call that another thread may make, while the owner does not free it.
 */
void agent_abort(struct agent *a, const char *why);

struct agent_part {
	const void *data;
	size_t len;
};

/* Sends a header and parts with up to AGENT_FDS_MAX fds (borrowed; duplicated if the message is
 * queued). Calls `fn` exactly once unless it returns -1. NULL: the reply is ignored. */
int agent_send(struct agent *a, enum agent_type type, const struct agent_part *parts, size_t nparts,
	       const int *fds, size_t nfds, agent_fn *fn, void *arg, struct err *err);

/* Discards later replies to `arg`, because its owner is about to be freed. */
void agent_cancel(struct agent *a, const void *arg);

/* A new id for AGENT_EXEC and AGENT_JOB. It is unique in the sandbox if one connection counts from
 * 0 and every other one from a base of its own. */
uint64_t agent_next_exec(struct agent *a);
/* agent_next_exec() returns ids above `base` from now on, and never lower ones than before. A side
 * connection uses agent_side_base() of a random number. */
void agent_number_from(struct agent *a, uint64_t base);
static inline uint64_t agent_side_base(uint32_t random)
{
	return (random % INT32_MAX + 1ull) * AGENT_SIDE_EXEC;
}
/* Events of `exec` go to fn until agent_unlisten() or agent_free(). ERR_CONFLICT if it already has
 * a listener. */
int agent_listen(struct agent *a, uint64_t exec, agent_event_fn *fn, void *arg, struct err *err);
void agent_unlisten(struct agent *a, uint64_t exec);

/* How long agent_call() waits for each reply before ERR_TIMEOUT. < 0, the default: no limit. */
void agent_set_timeout(struct agent *a, int ms);
int agent_timeout(const struct agent *a);

/* The message when lodge-init closed the connection. */
#define AGENT_LOST "sandbox is gone: connection lost"
/* ERR_UNAVAILABLE for a message that lodge-init should not have sent. */
int agent_protocol_error(struct err *err, const char *problem);
/* Replaces control characters: text from a sandbox may be shown on a terminal. */
void agent_clean_text(char *text);

#endif
