/* SPDX-License-Identifier: Apache-2.0 */
/* The names in a directory, without "." and "..", in byte order. */
#ifndef LODGE_INIT_FILES_NAME_LIST_H
#define LODGE_INIT_FILES_NAME_LIST_H

#include <stddef.h>

struct name_list {
	char **list;
	size_t n;
	char *bytes;
};

/* 0 or -errno; `dir` must be open for reading. */
int name_list_read(struct name_list *to, int dir);
void name_list_free(struct name_list *n);

#endif
