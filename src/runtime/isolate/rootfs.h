/* SPDX-License-Identifier: Apache-2.0 */
/* The file tree of a sandbox, in two stages that run inside its mount namespace:
 *
 *   base   a bare read-only tree shared by all sandboxes, with this one's /proc and /dev on it;
 *          a sandbox waiting in the pool lives there
 *   root   the overlay of its layers with /proc and /dev moved over, made the root
 *
 * A cold start runs both at once; a pool slot runs the second when it is claimed. Everything comes
 * as descriptors of detached mounts: no path of the host is looked up here. */
#ifndef LODGE_RUNTIME_ISOLATE_ROOTFS_H
#define LODGE_RUNTIME_ISOLATE_ROOTFS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "runtime/isolate/devfs.h"
#include "wire/keeper_proto.h"

enum { ROOTFS_LOWERS_MAX = KEEPER_LAYERS_MAX + 1, ROOTFS_BINDS_MAX = KEEPER_BINDS_MAX + 8 };

struct rootfs_bind {
	int mnt; /* detached, its attributes already set */
	bool own_inodes; /* shared by many: show it through an overlay of the sandbox's own */
	char path[KEEPER_PATH_SIZE];
};

struct rootfs {
	int lowers[ROOTFS_LOWERS_MAX]; /* detached, ids mapped; the first is the topmost */
	size_t nlowers;
	int upper; /* detached, ids mapped; holds "u" and "w" */
	struct rootfs_bind binds[ROOTFS_BINDS_MAX];
	size_t nbinds;
	uid_t owner; /* the sandbox's root as the host sees it */
	char workdir[KEEPER_PATH_SIZE]; /* made where it is missing; empty: none */
	uid_t uid; /* whose it is then, as the host sees it */
	gid_t gid;
	bool root_class, rootless;
	char hostname[KEEPER_ID_SIZE];
};

void rootfs_init(struct rootfs *r);
void rootfs_close(struct rootfs *r);

/* The tree all sandboxes share, made once by the keeper in its own mount namespace at
 * <scratch>/base. The keeper's working directory becomes that tree, because it (and no descriptor)
 * is what the kernel carries over into a new mount namespace. */
int rootfs_host_init(int scratch, struct err *err);

/* In the new mount namespace, from the inherited working directory. */
int rootfs_enter_base(const struct devfs *dev, bool rootless, struct err *err);
/* For a pool slot: the base tree becomes the root. */
int rootfs_pivot_base(struct err *err);
/* From the base tree (working directory): makes the sandbox's own root and moves there. */
int rootfs_enter(const struct rootfs *r, struct err *err);

#endif
