/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's end of the connection to the keeper. The keeper replies strictly in order, so a
 * queue of callbacks matches replies to requests. Not thread-safe: one loop owns it. */
#ifndef LODGE_SANDBOX_KEEPER_CLIENT_H
#define LODGE_SANDBOX_KEEPER_CLIENT_H

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "wire/enforcement.h"
#include "wire/keeper_proto.h"

struct keeper_client;

/* In err.sys of ERR_UNAVAILABLE: the keeper exited, whatever became of the request. The keeper
 * itself never replies with it. */
#define KEEPER_FAILED EOWNERDEAD
/* The same, but it does not answer: it is stopped, or waits for a disk. It may carry out the
 * request later; nobody sees the reply then. */
#define KEEPER_SILENT ETIME

/* `reply` is NULL if the keeper is gone (then `err` is set). A reply with a code other than
 * ERR_NONE is passed unchanged. `fd` is -1 or owned by the callee. */
typedef void keeper_client_fn(void *arg, const struct keeper_reply *reply, int fd,
			      const struct err *err);

typedef int keeper_start_fn(void *arg, int *ret_fd, int *ret_pidfd, struct err *err);

struct keeper_client_opts {
	const char *program; /* NULL: lodge-keeper next to this program, else in LIBEXECDIR */
	const char *home; /* absolute; the keeper creates it */
	bool oneshot; /* the keeper destroys all its sandboxes when this connection ends */
	/* Starts the keeper for a process without the privileges to do it; returns its socket and
	 * pidfd. NULL: keeper_spawn(). */
	keeper_start_fn *start;
	void *start_arg;
};

/* Starts a keeper with posix_spawn(). On failure no process is left. */
int keeper_client_spawn(const struct keeper_client_opts *opts, struct keeper_client **ret,
			struct err *err);
/* Takes ownership of a connected SOCK_SEQPACKET socket, also on failure. */
int keeper_client_take(int fd, struct keeper_client **ret, struct err *err);
/* Closes the socket and, if this client started the keeper, waits up to 20 s for it to clean up and
 * exit. NULL is allowed. */
void keeper_client_free(struct keeper_client *k);
DEFINE_AUTO(struct keeper_client *, keeper_client_free);

/* ---- for a loop: poll keeper_client_fd() for POLLIN, then dispatch ------------------------- */
int keeper_client_fd(const struct keeper_client *k);
/* The connection ended, or the keeper that this client started exited. */
bool keeper_client_is_dead(const struct keeper_client *k);
/* Sends one request with `fds` (borrowed); calls fn once with the reply. */
int keeper_client_send(struct keeper_client *k, const struct keeper_request *req, const int *fds,
		       size_t nfds, keeper_client_fn *fn, void *arg, struct err *err);
/* Reads available replies and calls the callbacks. -1: the keeper is gone or sent an invalid reply;
 * every pending callback was called with NULL. */
int keeper_client_dispatch(struct keeper_client *k, struct err *err);

/* ---- blocking, by poll(2) on the above ------------------------------------------------------ */
/* Waits until a callback set *done, which is part of *arg, its argument; on failure callbacks with
 * this argument are not called any more. done NULL: until no request is pending. */
int keeper_client_wait(struct keeper_client *k, const bool *done, const void *arg, struct err *err);
/* How long the calls below wait. By default they wait for ever. */
struct keeper_client_wait {
	int64_t silence_ms; /* a keeper that owes a reply for this long is silent; 0: never */
	int64_t until; /* clock_mono_ms(): no call fails because of that before */
};
void keeper_client_set_wait(struct keeper_client *k, struct keeper_client_wait wait);
/* Keeps in *since the clock_mono_ms() since when the keeper owes a reply; 0: it does not. Any
 * thread may read it. */
void keeper_client_set_monitor(struct keeper_client *k, atomic_int_least64_t *since);
/* Waits until the keeper owes nothing: calls that failed with KEEPER_SILENT leave it owing. */
int keeper_client_settle(struct keeper_client *k, struct err *err);
/* What is wrong with a keeper that has been silent for this long, and what to do. */
void keeper_client_describe_silence(int64_t silent_ms, char *ret, size_t size);
struct keeper_request keeper_client_request(enum keeper_op op, const char *id);
/* Copies a name into a field of a request. Fails if it does not fit: a truncated name could be that
 * of another sandbox. `what` names the field in the error. */
int keeper_client_set_name(char *field, size_t size, const char *what, const char *value,
			   struct err *err);
/* The same for a list of at most KEEPER_LAYERS_MAX layers. */
int keeper_client_set_layers(char (*fields)[KEEPER_ID_SIZE], uint32_t *ret_n,
			     const char *const *names, size_t n, struct err *err);
/* A refusal by the keeper is -1 with its message ("step: message"). *ret_fd is -1 or owned by the
 * caller; ret and ret_fd may be NULL. */
int keeper_client_call(struct keeper_client *k, const struct keeper_request *req, const int *fds,
		       size_t nfds, struct keeper_reply *ret, int *ret_fd, struct err *err);
/* What the keeper enforces, and its features (enum keeper_feature); cached after the first call. */
int keeper_client_enforcement(struct keeper_client *k, struct enforcement *ret, struct err *err);
int keeper_client_features(struct keeper_client *k, unsigned *ret, struct err *err);
int keeper_client_pool(struct keeper_client *k, struct keeper_pool want,
		       struct keeper_pool_state *ret, struct err *err);
/* Sets how much of the host's disk stays free (0: the default), and reads its space. */
int keeper_client_disk(struct keeper_client *k, uint64_t reserve_bytes, struct keeper_disk *ret,
		       struct err *err);
/* Calls fn for each sandbox and layer of the keeper; `pid` is 0 unless it is a running sandbox. A
 * result other than 0 ends the calls and is returned. fn must not use `k`. */
typedef int keeper_list_fn(void *arg, enum keeper_what what, const char *id, pid_t pid);
int keeper_client_list(struct keeper_client *k, keeper_list_fn *fn, void *arg, struct err *err);

#endif
