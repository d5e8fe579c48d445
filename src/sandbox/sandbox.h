/* SPDX-License-Identifier: Apache-2.0 */
/* One sandbox: created by the keeper, controlled through its lodge-init. */
#ifndef LODGE_SANDBOX_SANDBOX_H
#define LODGE_SANDBOX_SANDBOX_H

#include <sys/types.h>

#include "base/auto.h"
#include "wire/keeper_proto.h"

struct agent;
struct keeper_client;
struct sandbox;

struct sandbox_bind {
	int fd; /* a directory that the caller opened (O_PATH is enough); borrowed */
	const char *path; /* absolute, inside */
	bool writable;
};

struct sandbox_spec {
	const char *id; /* NULL: a random one */
	const char *template; /* "host", "empty" or a name below <home>/templates */
	const char *hostname; /* NULL: "lodge" */
	struct limits limits;
	enum keeper_store store;
	enum keeper_class class;
	unsigned demand; /* enum keeper_demand */
	uint32_t uid, gid;
	const char *workdir; /* absolute; if missing, it is created and owned by the guest's user;
				or NULL */
	bool no_pool;
	bool keep; /* store disk: the files outlive the sandbox (see sandbox/layer_client.h) */
	bool take; /* the topmost layer becomes the writable layer and is no longer shared */
	const char *const *layers; /* above the template; the first is topmost */
	size_t nlayers;
	const struct sandbox_bind *binds;
	size_t nbinds;
};

/* template "host", limits_default(), store memory, class user, uid and gid 1000. */
struct sandbox_spec sandbox_spec_default(void);

/* Creates a sandbox and connects to its lodge-init; blocks. `k` is borrowed and must outlive it. On
 * failure nothing is left behind and *ret is unchanged. */
int sandbox_new(struct keeper_client *k, const struct sandbox_spec *spec, struct sandbox **ret,
		struct err *err);
/* Connects to a running sandbox, as after a crash of the engine, without a request to lodge-init,
 * which may be frozen. Call agent_hello() or agent_number_from() before the first command: each
 * connection numbers its commands above those that existed then. */
int sandbox_attach(struct keeper_client *k, const char *id, struct sandbox **ret, struct err *err);
/* Kills every process and removes the files, in every state. The handle must still be freed. */
int sandbox_destroy(struct sandbox *sb, struct err *err);
/* Closes the connection and frees the handle; the sandbox keeps running. NULL is allowed. */
void sandbox_free(struct sandbox *sb);
DEFINE_AUTO(struct sandbox *, sandbox_free);

const char *sandbox_id(const struct sandbox *sb);
/* Borrowed: for agent_fd(), agent_dispatch() in a loop, exec_*() and files_*(). */
struct agent *sandbox_agent(struct sandbox *sb);
pid_t sandbox_pid(const struct sandbox *sb); /* lodge-init, in the host's PID namespace */
enum keeper_source sandbox_source(const struct sandbox *sb);
uint64_t sandbox_ready_us(const struct sandbox *sb); /* how long sandbox_new() took */

int sandbox_stats(struct sandbox *sb, struct keeper_stats *ret, struct err *err);
/* Stops the sandbox and turns its files into the template `name`. */
int sandbox_seal(struct sandbox *sb, const char *name, struct err *err);

#endif
