/* SPDX-License-Identifier: Apache-2.0 */
/* Directories by descriptor, sorted, never through a link; and buffered output. For workers. */
#ifndef LODGE_INIT_FILES_DIR_WALK_H
#define LODGE_INIT_FILES_DIR_WALK_H

#include <stddef.h>
#include <sys/types.h>

/* The names in a directory, without "." and "..", in byte order. */
struct name_list {
	char **list;
	size_t n;
	char *bytes;
};

/* 0 or -errno; `dir` must be open for reading. */
int name_list_read(struct name_list *to, int dir);
void name_list_free(struct name_list *n);

/* A subdirectory, not through a link. Descriptor or -errno. */
int walk_dir(int dir, const char *name);
/* The directory a job starts from, where links are followed as usual. */
int walk_root(const char *path);

struct writer {
	int fd;
	size_t n;
	char buf[64 * 1024];
};

/* 0 or -errno. */
int writer_put(struct writer *w, const void *bytes, size_t len);
int writer_flush(struct writer *w);

#endif
