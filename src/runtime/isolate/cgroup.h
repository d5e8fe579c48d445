/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of sandboxes. The v2 tree always groups, freezes and kills the processes of a
 * sandbox. Limits are set in the v2 tree if it has the controllers, else in the v1 hierarchies:
 *
 *   v2 with controllers   <base>/lodge-I/ID           cpu, pids
 *                         <base>/lodge-I/ID/init      lodge-init, outside the memory limit
 *                         <base>/lodge-I/ID/cmd/xN    commands; memory on cmd
 *   v1 and a bare v2      v2 <base>/lodge-I/ID[/xN], v1 memory|cpu|pids /lodge-I/ID
 *
 * I names the keeper's state directory, so that a later keeper finds the cgroups of an earlier one.
 */
#ifndef LODGE_RUNTIME_ISOLATE_CGROUP_H
#define LODGE_RUNTIME_ISOLATE_CGROUP_H

#include <sys/types.h>

#include "runtime/isolate/cgroup_host.h"
#include "wire/keeper_proto.h"

/* Descriptors of one sandbox's cgroups that lodge-init and its commands need; -1: absent. */
struct cgroup_fds {
	int dir; /* v2: the cgroup into which the child is cloned */
	int commands; /* v2: a detached mount of the directory of the commands' cgroups */
	int init; /* v2 with controllers: cgroup.procs of init/, see cgroup_enter() */
	int tasks[CGROUP_V1_COUNT]; /* v1 `tasks` of the sandbox's cgroups */
	int memory_out; /* v1 memory `tasks` of lodge-I, the cgroup of lodge-init itself */
	int oom, pids_events;
};

/* Makes the cgroups of `id` and sets the limits. `owner`: host uid and gid of lodge-init, which may
 * make cgroups for commands. On failure nothing is left behind. */
int cgroup_make(struct cgroup_host *h, const char *id, const struct limits *limits, uid_t owner,
		struct cgroup_fds *ret, struct err *err);
void cgroup_fds_close(struct cgroup_fds *fds);
/* Called by the new process, on its own copy of the descriptors, after it made its cgroup
 * namespace. In v2 a cgroup can enable controllers for its children only while it has no process of
 * its own, and the root of a cgroup namespace is the cgroup of its creator. So the process starts
 * in ID and moves to init/; then this sets the memory limit of cmd/ and opens f->oom. Does nothing
 * in v1. */
int cgroup_enter(struct cgroup_fds *f, const struct limits *limits, struct err *err);

enum cgroup_use {
	CGROUP_EMPTY, /* no process yet: cgroup_enter() will set the memory limits */
	CGROUP_WAITING, /* a slot of the pool: nothing of the guest has run */
	CGROUP_IN_USE, /* the memory of lodge-init is only raised */
};
int cgroup_set_limits(struct cgroup_host *h, const char *id, const struct limits *l,
		      enum cgroup_use use, struct err *err);
int cgroup_freeze(struct cgroup_host *h, const char *id, bool frozen, struct err *err);
int cgroup_stats(struct cgroup_host *h, const char *id, struct keeper_stats *ret, struct err *err);

/* How often the kernel killed lodge-init itself because memory ran out; 0 if that is unknown: under
 * cgroup v1 it is in no memory cgroup of its own. */
uint64_t cgroup_init_oom_kills(struct cgroup_host *h, const char *id);

/* Sends SIGKILL to every process in it. 0 or -errno; a missing cgroup is success. */
int cgroup_kill(struct cgroup_host *h, const char *id);
/* True while a process is in it. */
bool cgroup_is_populated(struct cgroup_host *h, const char *id);
/* Removes the directories. 0, or -EBUSY while processes are dying: call it again. */
int cgroup_remove(struct cgroup_host *h, const char *id);

/* Calls fn for every cgroup of a sandbox, in every hierarchy. */
typedef void cgroup_each_fn(const char *id, void *arg);
void cgroup_each(struct cgroup_host *h, cgroup_each_fn *fn, void *arg);

#endif
