/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroup hierarchies of the host, and lodge-I, the keeper's own directory in each. */
#ifndef LODGE_RUNTIME_ISOLATE_CGROUP_HOST_H
#define LODGE_RUNTIME_ISOLATE_CGROUP_HOST_H

#include <stdbool.h>
#include <stdint.h>

enum cgroup_v1 { CGROUP_MEMORY, CGROUP_CPU, CGROUP_PIDS, CGROUP_V1_COUNT };

/* -1: the host does not have this hierarchy, or refuses access to it. */
struct cgroup_host {
	int v2; /* lodge-I in the v2 tree, for killing and freezing */
	int v1[CGROUP_V1_COUNT]; /* lodge-I in each v1 hierarchy that has the controller */
	bool v2_limits; /* the v2 tree has the controllers memory, cpu and pids */
	int v2_parent, v1_parent[CGROUP_V1_COUNT];
	char name[32]; /* lodge-I */
	bool named_missing; /* the cgroup of LODGE_CGROUP does not exist; another one is used */
};

/* Finds the hierarchies and makes lodge-I in each. In v2, lodge-I lies below the cgroup that the
 * environment variable LODGE_CGROUP names, if it is set. If the host has no mounted v2 tree, this
 * mounts a private one at `scratch`. Hierarchies that cannot be used stay -1; see
 * cgroup_host_features(). */
void cgroup_host_init(struct cgroup_host *h, uint64_t instance, const char *scratch);
/* Removes lodge-I where it is empty and closes everything. */
void cgroup_host_fini(struct cgroup_host *h);
/* KEEPER_HAS_* bits. */
uint32_t cgroup_host_features(const struct cgroup_host *h);

#endif
