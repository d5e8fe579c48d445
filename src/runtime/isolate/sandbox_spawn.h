/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a sandbox: clones into new namespaces, builds the file tree, drops all privileges and
 * executes lodge-init. Also changes the root of a slot when it is claimed. */
#ifndef LODGE_RUNTIME_ISOLATE_SANDBOX_SPAWN_H
#define LODGE_RUNTIME_ISOLATE_SANDBOX_SPAWN_H

#include "runtime/isolate/cgroup.h"
#include "runtime/isolate/idmap.h"
#include "runtime/isolate/rootfs.h"
#include "runtime/isolate/seccomp.h"

struct sandbox_spawn_host {
	struct seccomp_prog filter[2]; /* by class */
	int init; /* sealed memfd of lodge-init */
	int self; /* pidfd of the keeper */
	bool rootless;
};

/* The parts of a sandbox that do not depend on the request. */
struct sandbox_parts {
	struct idmap idmap;
	struct devfs dev;
	struct cgroup_fds cgroup;
	char group[KEEPER_ID_SIZE]; /* name of its cgroups */
};
#define SANDBOX_PARTS_NONE                                                                         \
	{                                                                                          \
		.idmap = { -1, -1, -1, 0 }, .dev = { -1, -1 }, .cgroup = {                         \
			-1,                                                                        \
			-1,                                                                        \
			-1,                                                                        \
			{ -1, -1, -1 },                                                            \
			-1,                                                                        \
			-1,                                                                        \
			-1                                                                         \
		}                                                                                  \
	}

struct sandbox_spawn_args {
	const struct sandbox_spawn_host *host;
	const struct sandbox_parts *parts;
	const struct limits *limits;
	const struct rootfs *root; /* NULL: a slot of the pool, which stays on the base tree */
	int listener;
	bool root_class;
	uid_t inner_id; /* uid and gid of lodge-init inside */
};

/* On failure err names the step, and no process is left. */
int sandbox_spawn(const struct sandbox_spawn_args *args, pid_t *ret_pid, struct err *err);

/* Gives the waiting slot `pid` its root. On failure the slot must be discarded. */
int sandbox_spawn_claim(pid_t pid, const struct rootfs *root, struct err *err);

/* Copies lodge-init into a sealed memfd, so that no process inside has access to its file. */
int sandbox_spawn_seal_init(const char *path, struct err *err);

#endif
