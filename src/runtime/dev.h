/* SPDX-License-Identifier: Apache-2.0 */
/* /dev: a few harmless devices and a shared-memory directory in one small file system of the
 * sandbox's own (locks and watches on a node are seen by whoever shares its inode), and its own
 * terminals. */
#ifndef LODGE_RUNTIME_DEV_H
#define LODGE_RUNTIME_DEV_H

#include <stdbool.h>
#include <sys/types.h>

/* In the sandbox's mount namespace: mounts it at "dev" below the working directory. `tty_gid`:
 * group of terminals as the mounter sees it. 0 or -errno. */
int dev_attach(bool rootless, gid_t tty_gid);

#endif
