/* SPDX-License-Identifier: Apache-2.0 */
/* /dev: a few harmless devices and a shared-memory directory in one small file system of the
 * sandbox's own (locks and watches on a node are seen by whoever shares its inode), and its own
 * terminals. */
#ifndef LODGE_RUNTIME_ISOLATE_DEVFS_H
#define LODGE_RUNTIME_ISOLATE_DEVFS_H

#include <stdbool.h>
#include <sys/types.h>

struct devfs {
	int tree, pts; /* detached mounts */
};

/* Can be made before anyone asks. `tty_gid`: group of terminals as the mounter sees it. All: 0 or
 * -errno. */
int devfs_make(bool rootless, gid_t tty_gid, struct devfs *ret);
void devfs_close(struct devfs *d);

/* In the sandbox's mount namespace: puts it at "dev" below the working directory. */
int devfs_attach(const struct devfs *d, bool rootless);

#endif
