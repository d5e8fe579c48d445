/* SPDX-License-Identifier: Apache-2.0 */
/* The first path of each file that has several hard links. */
#ifndef LODGE_RUNTIME_STORAGE_LAYER_LINKS_H
#define LODGE_RUNTIME_STORAGE_LAYER_LINKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { LAYER_LINKS_BYTES = 256 << 20 }; /* maximum memory for all entries */

struct layer_links {
	uint64_t seed; /* random, so that a guest cannot cause hash collisions */
	struct layer_link *slots;
	size_t n, size;
	char *paths;
	size_t paths_len, paths_size;
};

void layer_links_init(struct layer_links *l);
void layer_links_free(struct layer_links *l);

/* 1: already added, *ret is its first path, valid until the next call. 0: now added with this path.
 * -errno; -E2BIG: too many. Layers never share a file. */
int layer_links_add(struct layer_links *l, unsigned layer, const struct stat *st, const char *path,
		    const char **ret);

#endif
