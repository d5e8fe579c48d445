/* SPDX-License-Identifier: Apache-2.0 */
/* A path split into its open parent directory and the last name. */
#ifndef LODGE_INIT_FILES_PARENT_DIR_H
#define LODGE_INIT_FILES_PARENT_DIR_H

#include <limits.h>
#include <stdbool.h>

struct parent_dir {
	int dir; /* -1: none */
	char name[NAME_MAX + 1];
};

void parent_dir_fini(struct parent_dir *w);
/* 0 or -errno. The name is never "", "." or "..". `make` creates missing directories, mode 0755. */
int parent_dir_find(struct parent_dir *w, int base, const char *path, bool make);
/* Opens a directory by path; `make` creates it. Descriptor (O_PATH) or -errno. */
int parent_dir_open(int base, const char *path, bool make);
int parent_dir_rename(int from_dir, const char *from, int to_dir, const char *to, bool noreplace);

#endif
