/* SPDX-License-Identifier: Apache-2.0 */
/* /dev of a sandbox: a few harmless devices and a directory for shared memory in one small file
 * system of its own, and its own terminals. Sandboxes must not share the inode of a node, because
 * they would see each other's locks and watches on it. */
#ifndef LODGE_RUNTIME_ISOLATE_DEVFS_H
#define LODGE_RUNTIME_ISOLATE_DEVFS_H

#include <stdbool.h>
#include <sys/types.h>

struct devfs {
	int tree, pts; /* detached mounts */
};

/* Does not depend on the request. `tty_gid`: group of the terminals in the namespace of the caller.
 * All return 0 or -errno. */
int devfs_make(bool rootless, gid_t tty_gid, struct devfs *ret);
void devfs_close(struct devfs *d);

/* In the sandbox's mount namespace: attaches it at "dev" below the working directory. */
int devfs_attach(const struct devfs *d, bool rootless);

#endif
