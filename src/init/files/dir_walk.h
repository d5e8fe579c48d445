/* SPDX-License-Identifier: Apache-2.0 */
/* Opens directories by descriptor, never through a link. For file jobs. */
#ifndef LODGE_INIT_FILES_DIR_WALK_H
#define LODGE_INIT_FILES_DIR_WALK_H

/* A subdirectory; a link is not followed. Descriptor or -errno. */
int dir_walk_open(int dir, const char *name);
/* The directory a file job starts from; links are followed as usual. */
int dir_walk_root(const char *path);

#endif
