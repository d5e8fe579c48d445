/* SPDX-License-Identifier: Apache-2.0 */
/* Where a file that has several names was met first. */
#ifndef LODGE_RUNTIME_STORAGE_LAYER_LINKS_H
#define LODGE_RUNTIME_STORAGE_LAYER_LINKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { LAYER_LINKS_BYTES = 256 << 20 }; /* at most, for all of them */

struct layer_links {
	uint64_t seed; /* a guest must not be able to choose who meets whom */
	struct layer_link *slots;
	size_t n, size;
	char *paths;
	size_t paths_len, paths_size;
};

void layer_links_init(struct layer_links *l);
void layer_links_free(struct layer_links *l);

/* 1 and its first path, valid until the next call; 0 if this is the first, which is remembered;
 * -errno, -E2BIG for too many. Layers never share a file. */
int layer_links_add(struct layer_links *l, unsigned layer, const struct stat *st, const char *path,
		    const char **ret);

#endif
