/* SPDX-License-Identifier: Apache-2.0 */
/* Whiteouts of image layers: ".wh.name" removes a file of a lower layer, ".wh..wh..opq" all files
 * that lower layers have in the directory. */
#ifndef LODGE_INIT_FILES_TAR_WHITEOUT_H
#define LODGE_INIT_FILES_TAR_WHITEOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The paths that this layer has unpacked, as hashes: an opaque directory keeps them. */
struct tar_paths {
	uint64_t *slots;
	size_t size, n;
};

/* Adds the path and the directories on it. 0 or -errno. */
int tar_paths_add(struct tar_paths *p, const char *path);
void tar_paths_fini(struct tar_paths *p);

bool tar_whiteout_is_one(const char *name);
/* Applies the whiteout `path`, whose last name is `name` and whose directory is `dir`. Leaves
 * what is mounted in the directory alone. 0 or -errno. */
int tar_whiteout_apply(const struct tar_paths *p, int dir, const char *path, const char *name);

#endif
