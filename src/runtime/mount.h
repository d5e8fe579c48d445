/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts as descriptors: made detached, then attached. All return an fd, 0 or -errno. */
#ifndef LODGE_RUNTIME_MOUNT_H
#define LODGE_RUNTIME_MOUNT_H

#include <stddef.h>
#include <stdint.h>

struct mount_option {
	const char *key, *value; /* value NULL: a flag */
};

/* A new file system, detached. `attr`: SYS_ATTR_*. */
int mount_new(const char *type, const struct mount_option *options, size_t count, uint64_t attr);

/* Changes options of the file system whose mount has its root at `dir`. */
int mount_reconfigure(int dir, const struct mount_option *options, size_t count);

/* A detached copy of the tree at dir/path, with `attr` set; `userns` >= 0 maps its ids. */
int mount_clone(int dir, const char *path, uint64_t attr, int userns);
/* The same with all mounts below it. An unprivileged process cannot leave these out, because that
 * would show what they cover: mount_clone() then fails with -EINVAL. */
int mount_clone_all(int dir, const char *path, uint64_t attr);

/* Sets attributes on a detached or attached mount. */
int mount_set(int mnt, uint64_t attr, int userns);

/* Attaches a detached mount at dir/path, or on the directory `dir` itself if path is "". */
int mount_attach(int mnt, int dir, const char *path);

#endif
