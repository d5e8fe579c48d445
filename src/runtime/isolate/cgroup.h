/* SPDX-License-Identifier: Apache-2.0 */
/* The control groups of sandboxes. The v2 tree is always used to hold, freeze and kill all
 * processes of a sandbox; the limits are set there where the v2 tree has the controllers, and in
 * the v1 hierarchies where those have them. One interface, two layouts:
 *
 *   v2 with controllers   <base>/lodge-I/ID           cpu, pids
 *                         <base>/lodge-I/ID/init      lodge-init, outside the memory limit
 *                         <base>/lodge-I/ID/cmd/xN    commands; memory on cmd
 *   v1 and a bare v2      v2 <base>/lodge-I/ID[/xN], v1 memory|cpu|pids /lodge-I/ID
 *
 * I names the keeper's state directory, so that a later keeper finds what an earlier one left. */
#ifndef LODGE_RUNTIME_ISOLATE_CGROUP_H
#define LODGE_RUNTIME_ISOLATE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "runtime/isolate/cgroup_host.h"
#include "wire/keeper_proto.h"

/* Descriptors lodge-init and its commands need of one sandbox's groups; -1 where absent. */
struct cgroup_fds {
	int dir; /* v2: where the child is cloned into */
	int leaves; /* v2: a detached mount of the directory that holds the commands' leaves */
	int init; /* v2 with controllers: cgroup.procs of init/, see cgroup_enter() */
	int tasks[CGROUP_V1_COUNT]; /* v1 `tasks` of the sandbox's groups */
	int memory_out; /* v1 memory `tasks` of lodge-I: where lodge-init itself lives */
	int oom, pids_events;
};

/* Makes the groups of `id` and sets the limits. `owner`: host uid and gid of lodge-init, which may
 * make leaves. On failure nothing is left behind. */
int cgroup_make(struct cgroup_host *h, const char *id, const struct limits *limits, uid_t owner,
		struct cgroup_fds *ret, struct err *err);
void cgroup_fds_close(struct cgroup_fds *fds);
/* For the new process itself, on its own copy of the descriptors, when it has its cgroup namespace:
 * v2 lets a group hand controllers down only while no process is in it, and the namespace begins at
 * the group one is in. So it is born in ID, moves down to init/, and only then cmd/ gets its memory
 * limit and *f its `oom`. Elsewhere there is nothing to do. */
int cgroup_enter(struct cgroup_fds *f, const struct limits *limits, struct err *err);

/* `entered` false: of a group nobody lives in yet, whose memory cgroup_enter() will set. */
int cgroup_set_limits(struct cgroup_host *h, const char *id, const struct limits *l, bool entered,
		      struct err *err);
int cgroup_freeze(struct cgroup_host *h, const char *id, bool frozen, struct err *err);
int cgroup_stats(struct cgroup_host *h, const char *id, struct keeper_stats *ret, struct err *err);

/* SIGKILL to everything inside. 0, or -errno; a missing group is success. */
int cgroup_kill(struct cgroup_host *h, const char *id);
/* True if a process is still in it. */
bool cgroup_is_populated(struct cgroup_host *h, const char *id);
/* Removes the directories. 0, or -EBUSY while processes are still dying: call again. */
int cgroup_remove(struct cgroup_host *h, const char *id);

/* Calls fn for every sandbox that has a group, whatever hierarchy it is in. */
typedef void cgroup_each_fn(const char *id, void *arg);
void cgroup_each(struct cgroup_host *h, cgroup_each_fn *fn, void *arg);

#endif
