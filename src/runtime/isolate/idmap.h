/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox needs that can be made before anyone asks for it: a range of ids nobody else on
 * this host has, the user namespace that maps it, and a network namespace with a loopback.
 *
 * The user namespace is made under the range's own host uid, so that per-user kernel limits
 * (inotify, pending signals, namespaces) are counted per sandbox and not against root. The network
 * namespace belongs to the host's user namespace: no root inside ever administers it. */
#ifndef LODGE_RUNTIME_ISOLATE_IDMAP_H
#define LODGE_RUNTIME_ISOLATE_IDMAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum { IDMAP_RANGE = 65536 };

struct idmap {
	int userns, netns; /* netns -1: share the keeper's (only a weakened test build) */
	int lock; /* holds the range for as long as any process keeps it open; -1 rootless */
	uid_t base; /* first host id of the range */
};

struct idmap_host {
	bool rootless;
	int ids; /* directory that holds the host-wide lock file */
	uint32_t next;
	int proc; /* a procfs of our own, */
	unsigned proc_left; /* good for so many more */
};

/* `one_id` >= 0 (rootless): the namespace maps only this inner id, to the keeper's own user. */
int idmap_make(struct idmap_host *h, int one_id, struct idmap *ret, struct err *err);
void idmap_close(struct idmap *idmap);

/* A user namespace that maps one id of the host's files to one host id: what makes a caller's own
 * directory belong to the guest inside. An fd, or -1 with err. */
struct idmap_pair {
	uid_t uid;
	gid_t gid;
};
int idmap_map_one(struct idmap_pair on_disk, struct idmap_pair seen_as, struct err *err);

#endif
