/* SPDX-License-Identifier: Apache-2.0 */
/* One isolated machine: made by the keeper, spoken to through its lodge-init. */
#ifndef LODGE_SANDBOX_SANDBOX_H
#define LODGE_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/err.h"
#include "wire/keeper_proto.h"

struct agent;
struct keeper_client;
struct sandbox;

struct sandbox_bind {
	int fd; /* a directory opened by the caller, O_PATH is enough; borrowed */
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
	const char *workdir; /* absolute; made where it is missing, and the guest's then; or NULL */
	bool no_pool;
	bool keep; /* store disk: the files outlive the sandbox (see sandbox/layer_client.h) */
	bool take; /* the topmost layer becomes the writable one, and is a layer no more */
	const char *const *layers; /* over the template; the first is topmost */
	size_t nlayers;
	const struct sandbox_bind *binds;
	size_t nbinds;
};

/* template "host", limits_default(), store memory, class user, uid and gid 1000. */
struct sandbox_spec sandbox_spec_default(void);

/* Makes a sandbox and connects to its lodge-init; blocks. `k` is borrowed and must outlive it. On
 * failure nothing is left behind and *ret is untouched. */
int sandbox_new(struct keeper_client *k, const struct sandbox_spec *spec, struct sandbox **ret,
		struct err *err);
/* Connects again to a sandbox that runs already (after a crash of the engine). Commands are
 * numbered per connection, above what was there at its start: after another one was in use
 * agent_hello() brings this one up to date. */
int sandbox_connect(struct keeper_client *k, const char *id, struct sandbox **ret, struct err *err);
/* Only the connection: nothing is asked of lodge-init, which may be frozen. agent_hello() or
 * agent_number_from() come before the first command. */
int sandbox_attach(struct keeper_client *k, const char *id, struct sandbox **ret, struct err *err);
/* Ends every process and removes the files; works from every state. The handle stays to be freed.
 */
int sandbox_destroy(struct sandbox *sb, struct err *err);
/* Closes the connection and frees the handle; the sandbox itself goes on. NULL is allowed. */
void sandbox_free(struct sandbox *sb);
DEFINE_AUTO(struct sandbox *, sandbox_free);

const char *sandbox_id(const struct sandbox *sb);
/* Borrowed: for agent_fd(), agent_dispatch() in a loop, exec_*() and files_*(). */
struct agent *sandbox_agent(struct sandbox *sb);
pid_t sandbox_pid(const struct sandbox *sb); /* lodge-init, as the host sees it */
enum keeper_source sandbox_source(const struct sandbox *sb);
uint64_t sandbox_ready_us(const struct sandbox *sb); /* how long sandbox_new() took */

int sandbox_stats(struct sandbox *sb, struct keeper_stats *ret, struct err *err);
int sandbox_set_limits(struct sandbox *sb, const struct limits *limits, struct err *err);
int sandbox_freeze(struct sandbox *sb, struct err *err);
int sandbox_thaw(struct sandbox *sb, struct err *err);
/* Ends the sandbox; its files become those of the template `name`. */
int sandbox_seal(struct sandbox *sb, const char *name, struct err *err);

#endif
