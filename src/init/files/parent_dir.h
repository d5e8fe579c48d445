/* SPDX-License-Identifier: Apache-2.0 */
/* A path as the directory that holds it, open, and the name in there. */
#ifndef LODGE_INIT_FILES_PARENT_DIR_H
#define LODGE_INIT_FILES_PARENT_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct where {
	int dir; /* the caller's */
	char name[NAME_MAX + 1];
};

/* 0 or -errno. The name is never "", "." or "..". `make`: missing directories are made, 0755. */
int parent_dir_find(struct where *w, int base, const char *path, bool make);
/* Opens a directory by path, made where missing if `make`. Descriptor (O_PATH) or -errno. */
int parent_dir_dir(int base, const char *path, bool make);
int parent_dir_rename(int from_dir, const char *from, int to_dir, const char *to, bool noreplace);

#endif
