/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring and syncing one layer; layer_copy.h and layer_tar.h merge several.
 *
 * A layer is the upper directory of an overlay (index, metacopy and redirect_dir off).
 *
 * Guests wrote what these functions read, so they follow no symbolic link and enter no mount.
 * Memory and descriptors do not grow with the size of a tree, except for the paths of files with
 * several hard links. Every call blocks until it is done and runs in a process of its own. All
 * return 0 or -errno:
 *
 *   -E2BIG       more than 64 layers, or too many hard links or attributes of one file
 *   -ELOOP       deeper than 8192 levels
 *   -ESTALE      a layer changed meanwhile
 *   -EOPNOTSUPP  a layer was made by an overlay with redirects or metacopy */
#ifndef LODGE_RUNTIME_STORAGE_LAYER_STACK_H
#define LODGE_RUNTIME_STORAGE_LAYER_STACK_H

#include <stdint.h>

/* Disk space of a tree; each file counts once. */
int layer_stack_bytes(int dir, uint64_t *ret);

/* Waits until the file system of `dir` has written everything to disk. */
int layer_stack_sync(int dir);

#endif
