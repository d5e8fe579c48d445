/* SPDX-License-Identifier: Apache-2.0 */
/* /dev: one small read-only tree made when the keeper starts and shown to every sandbox, with a
 * terminal file system and a shared-memory directory of its own on top. */
#ifndef LODGE_RUNTIME_DEV_H
#define LODGE_RUNTIME_DEV_H

#include <stdbool.h>
#include <sys/types.h>

/* Builds the tree at dir/"dev" (an existing directory; the mount is attached there). */
int dev_build(int dir, bool rootless);

/* In the sandbox's mount namespace: a clone of `tree` at "dev" below the working directory, with
 * pts and shm. `tty_gid`: group of terminals as the mounter sees it. 0 or -errno. */
int dev_attach(const char *tree, gid_t tty_gid);

#endif
