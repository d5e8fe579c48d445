/* SPDX-License-Identifier: Apache-2.0 */
/* Directories by descriptor, never through a link. For file jobs. */
#ifndef LODGE_INIT_FILES_DIR_WALK_H
#define LODGE_INIT_FILES_DIR_WALK_H

#include <stddef.h>

/* A subdirectory; a link is not followed. Descriptor or -errno. */
int dir_walk_open(int dir, const char *name);
/* The directory a file job starts from; links are followed as usual. */
int dir_walk_root(const char *path);

/* The names in a directory, without "." and "..", in byte order. */
struct dir_names { /* zeroed: none */
	char **list;
	size_t n;
	char *bytes;
	size_t len, size;
};

/* 0 or -errno, without names; `dir` must be open for reading. */
int dir_walk_names(struct dir_names *ret, int dir);
void dir_walk_free_names(struct dir_names *n);

#endif
