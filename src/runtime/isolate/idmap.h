/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of a sandbox: a range of host ids that no other sandbox uses, the user namespace that
 * maps it, and a network namespace with a loopback interface.
 *
 * The user namespace is made under the first host uid of the range, so that the kernel counts
 * per-user limits (inotify, pending signals, namespaces) per sandbox and not against root. The
 * network namespace belongs to the host's user namespace, so root inside cannot administer it. */
#ifndef LODGE_RUNTIME_ISOLATE_IDMAP_H
#define LODGE_RUNTIME_ISOLATE_IDMAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum { IDMAP_RANGE = 65536 };

struct idmap {
	int userns, netns; /* netns -1: the keeper's own (only in a weakened test build) */
	int lock; /* reserves the range while any process has it open; -1: rootless */
	uid_t base; /* first host id of the range */
};

struct idmap_host {
	bool rootless;
	int ids; /* directory of the host-wide lock file */
	uint32_t next;
	int proc; /* a procfs of the keeper, */
	unsigned proc_left; /* to be used this many more times */
};

/* `one_id` (rootless): the only id inside; it maps to the keeper's own user. */
int idmap_make(struct idmap_host *h, int one_id, struct idmap *ret, struct err *err);
void idmap_close(struct idmap *idmap);

/* A user namespace that maps the owner of files on disk to one host id, so that a directory of the
 * caller belongs to the guest inside. An fd, or -1 and err. */
struct idmap_pair {
	uid_t uid;
	gid_t gid;
};
int idmap_map_one(struct idmap_pair on_disk, struct idmap_pair seen_as, struct err *err);

#endif
