/* SPDX-License-Identifier: Apache-2.0 */
/* The file tree of a sandbox, built in two stages inside its mount namespace:
 *
 *   base   a small read-only tree shared by all sandboxes, with the sandbox's own /proc and /dev;
 *          the root of a slot that waits in the pool
 *   root   the overlay of its layers, with /proc and /dev moved to it; becomes the root
 *
 * A cold start runs both stages; a slot runs the second when it is claimed. All mounts come as
 * descriptors of detached mounts: no path of the host is looked up here. */
#ifndef LODGE_RUNTIME_ISOLATE_ROOTFS_H
#define LODGE_RUNTIME_ISOLATE_ROOTFS_H

#include "runtime/isolate/devfs.h"
#include "wire/keeper_proto.h"

enum {
	ROOTFS_LOWERS_MAX = KEEPER_LAYERS_MAX + KEEPER_TEMPLATE_DEPTH,
	ROOTFS_BINDS_MAX = KEEPER_BINDS_MAX + 8
};

struct rootfs_bind {
	int mnt; /* detached, with its attributes set */
	bool own_inodes; /* mount it through an overlay, because other sandboxes use it too */
	char path[KEEPER_PATH_SIZE];
};

struct rootfs {
	int lowers[ROOTFS_LOWERS_MAX]; /* detached, ids mapped; topmost first */
	size_t nlowers;
	int upper; /* detached, ids mapped; contains "u" and "w" */
	struct rootfs_bind binds[ROOTFS_BINDS_MAX];
	size_t nbinds;
	uid_t owner; /* host id of the sandbox's root */
	char workdir[KEEPER_PATH_SIZE]; /* created if missing; empty: none */
	uid_t uid; /* host ids of the owner of a created workdir */
	gid_t gid;
	bool root_class, rootless;
	char hostname[KEEPER_ID_SIZE];
};

#define ROOTFS_NONE                                                                                \
	{                                                                                          \
		.upper = -1                                                                        \
	}
void rootfs_close(struct rootfs *r);

/* Makes the base tree once, in the keeper's own mount namespace at <scratch>/base, and makes it the
 * keeper's working directory: a new mount namespace inherits the working directory, but
 * descriptors keep referring to the old namespace. */
int rootfs_host_init(int scratch, struct err *err);

/* In the new mount namespace, from the inherited working directory. */
int rootfs_enter_base(const struct devfs *dev, bool rootless, struct err *err);
/* The working directory becomes the root; for a pool slot that is the base tree. */
int rootfs_pivot(struct err *err);
/* From the base tree (working directory): builds the sandbox's root and enters it. */
int rootfs_enter(const struct rootfs *r, struct err *err);

#endif
