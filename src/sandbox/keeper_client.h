/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's end of the keeper's socket. Requests are answered strictly in order, so a queue of
 * callbacks is all the matching there is. Not thread-safe: one loop owns it. */
#ifndef LODGE_SANDBOX_KEEPER_CLIENT_H
#define LODGE_SANDBOX_KEEPER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/err.h"
#include "wire/keeper_proto.h"

struct keeper_client;

/* `reply` is NULL when the keeper is gone (then `err` says so); a reply whose code is not ERR_NONE
 * comes as it is. `fd` is -1 or belongs to the callee. */
typedef void keeper_client_fn(void *arg, const struct keeper_reply *reply, int fd,
			      const struct err *err);

typedef int keeper_start_fn(void *arg, int *ret_fd, int *ret_pidfd, struct err *err);

struct keeper_client_opts {
	const char *program; /* NULL: lodge-keeper beside this program, else in LIBEXECDIR */
	const char *home; /* absolute; made by the keeper when missing */
	bool oneshot; /* everything it made ends with this connection */
	/* Whoever starts it for a process that may not: its socket, and its process. NULL: nobody.
	 */
	keeper_start_fn *start;
	void *start_arg;
};

/* Starts a keeper by posix_spawn. On failure nothing runs. */
int keeper_client_spawn(const struct keeper_client_opts *opts, struct keeper_client **ret,
			struct err *err);
/* Takes over a connected SOCK_SEQPACKET socket, also on failure. */
int keeper_client_take(int fd, struct keeper_client **ret, struct err *err);
/* Closes the socket and, if this client started the keeper, waits (at most 20 s) until it has
 * cleaned up and ended. NULL is allowed. */
void keeper_client_free(struct keeper_client *k);
DEFINE_AUTO(struct keeper_client *, keeper_client_free);

/* ---- for a loop: poll keeper_client_fd() for POLLIN, then dispatch ------------------------- */
int keeper_client_fd(const struct keeper_client *k);
/* The connection has ended, or the keeper that we started has. */
bool keeper_client_is_dead(const struct keeper_client *k);
/* Sends one request with `fds` (borrowed); fn is called once with the answer. */
int keeper_client_send(struct keeper_client *k, const struct keeper_request *req, const int *fds,
		       size_t nfds, keeper_client_fn *fn, void *arg, struct err *err);
/* Reads what is there and calls the callbacks. -1: the keeper is gone or talks nonsense; every
 * waiting callback was called with NULL. */
int keeper_client_dispatch(struct keeper_client *k, struct err *err);

/* ---- blocking, by poll(2) on the above ------------------------------------------------------ */
struct keeper_request keeper_client_request(enum keeper_op op, const char *id);
/* A refusal by the keeper is -1 with its sentence ("step: message"). *ret_fd is -1 or the caller's;
 * ret and ret_fd may be NULL. */
int keeper_client_call(struct keeper_client *k, const struct keeper_request *req, const int *fds,
		       size_t nfds, struct keeper_reply *ret, int *ret_fd, struct err *err);
/* The keeper's features (enum keeper_feature); asked once, then remembered. */
int keeper_client_features(struct keeper_client *k, unsigned *ret, struct err *err);
int keeper_client_pool(struct keeper_client *k, struct keeper_pool want,
		       struct keeper_pool_state *ret, struct err *err);
/* Calls fn for each thing the keeper holds; `pid` is 0 but for a sandbox that lives. What fn
 * returns is returned; once it is not 0, fn is not called any more. fn must not use `k`. */
typedef int keeper_list_fn(void *arg, enum keeper_what what, const char *id, pid_t pid);
int keeper_client_list(struct keeper_client *k, keeper_list_fn *fn, void *arg, struct err *err);

#endif
