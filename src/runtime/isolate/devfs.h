/* SPDX-License-Identifier: Apache-2.0 */
/* /dev of a sandbox: a few harmless devices and a directory for shared memory in one small file
 * system of its own, and its own terminals. Sandboxes must not share the inode of a node, because
 * they would see each other's locks and watches on it. */
#ifndef LODGE_RUNTIME_ISOLATE_DEVFS_H
#define LODGE_RUNTIME_ISOLATE_DEVFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct devfs {
	int tree, pts; /* detached mounts */
};

/* `tty_gid`: group of the terminals in the namespace of the caller. All return 0 or -errno.
 *
 * Files in /dev/shm count against the memory limit and stay when a command ends. They can take half
 * of it, so that a full /dev/shm leaves memory for the command that empties it. */
int devfs_make(bool rootless, gid_t tty_gid, uint64_t memory_bytes, struct devfs *ret);
void devfs_close(struct devfs *d);

/* Fits /dev/shm to another memory limit, before devfs_attach(). */
int devfs_resize(const struct devfs *d, uint64_t memory_bytes);
/* The same in a running sandbox: `init` is its PID 1. Space in use is never taken away. */
int devfs_resize_of(pid_t init, uint64_t memory_bytes);

/* In the sandbox's mount namespace: attaches it at "dev" below the working directory. */
int devfs_attach(const struct devfs *d, bool rootless);

#endif
