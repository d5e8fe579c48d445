/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-keeper: the only privileged process. It has one thread, answers fixed-size messages and
 * parses nothing that a guest wrote. It records running sandboxes in a directory that a reboot
 * empties: /run/lodge/H for root, where H names the home, or <home>/run for an ordinary user.
 *
 *   d/                                state of the keeper of a daemon
 *   o-RANDOM/                         state of one `lodge run`
 *     sandboxes/ID/{record,init.sock}   running sandboxes; a create makes this directory first
 *     trash/ID/                         sandboxes being removed; the next keeper continues
 *   mnt/                              mount points in the keeper's own mount namespace
 */
#ifndef LODGE_KEEPER_KEEPER_H
#define LODGE_KEEPER_KEEPER_H

#include "keeper/sandbox_table.h"
#include "runtime/isolate/cgroup.h"
#include "runtime/isolate/idmap.h"
#include "runtime/isolate/root_open.h"
#include "runtime/isolate/sandbox_spawn.h"
#include "runtime/storage/storage.h"

enum { KEEPER_PARTS_MAX = 8 };

struct slot;

struct keeper {
	bool rootless, oneshot;
	/* Device and inode of the home, for an engine with fewer rights than the keeper: the keeper
	 * then accepts only this home and bind-mounts no directory of the host. NULL: the engine
	 * has the same rights. */
	const char *closed;
	bool draining; /* the engine disconnected: finish pending work and exit */
	bool sealed_template; /* since it was started */
	bool sweep_failed; /* the state of a dead keeper could not be removed: do not retry */
	int home, run; /* directories of persistent files and of running sandboxes */
	int state; /* below run; locked while this keeper runs */
	int sandboxes, trash; /* state/sandboxes, state/trash */
	int scratch; /* mount points in the keeper's own mount namespace */
	uint32_t features; /* KEEPER_HAS_* */
	struct cgroup_host cgroups;
	struct sandbox_spawn_host spawn;
	struct storage storage;
	struct idmap_host idmap_host;
	struct root_source roots;
	struct sandbox_table table;
	size_t trash_count;
	/* prepared in advance */
	struct sandbox_parts parts[KEEPER_PARTS_MAX];
	size_t nparts, parts_target;
	struct slot *slots[KEEPER_SLOTS_MAX];
	size_t nslots;
	struct keeper_pool pool;
	uint64_t hits, misses, serial;
};

/* Enters its namespaces, locks the state directory and opens everything else. *k holds the options
 * of the command line. On success, `state_name` is the name of the state directory. */
int keeper_open(struct keeper *k, const char *home, char state_name[32], struct err *err);
/* Removes what the keeper no longer needs, after the main loop. */
void keeper_close(struct keeper *k, const char *state_name);

struct enforcement;
/* Opens the disk storage, except for a one-shot keeper: only its first use shows whether it has
 * quotas. */
void keeper_enforcement(struct keeper *k, struct enforcement *ret);
/* The id that names the cgroups of a state directory; the first call creates it. 0 or -errno. */
int keeper_cgroup_id(int state, uint64_t *ret);
/* Reaps every child that has exited. */
void keeper_reap(struct keeper *k);

#endif
