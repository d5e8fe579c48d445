/* SPDX-License-Identifier: Apache-2.0 */
/* Walks several layers as one merged tree, by the rules of the overlay. */
#ifndef LODGE_RUNTIME_STORAGE_LAYER_WALK_H
#define LODGE_RUNTIME_STORAGE_LAYER_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum { LAYER_WALK_LAYERS_MAX = 64, LAYER_WALK_DEPTH_MAX = 8192 };

struct layer_walk_item {
	unsigned layer; /* the layer that has it */
	int dir; /* its directory there */
	const char *path; /* from the root of the layer: "a/b/name" */
	const char *name;
	struct stat st;
	bool alone; /* no template shows through at this path */
};

struct layer_walk_dir {
	int fd; /* in the topmost layer that has it */
	const char *path; /* from the root of the layer: "a/b/"; the root itself is "" */
	const char *name;
	struct stat st;
	bool opaque; /* hides the directory of a template at this path */
	bool whiteouts; /* in leave(): it contains whiteouts */
};

/* A non-zero return value ends the walk and is its result. */
struct layer_walk_ops {
	int (*enter)(void *arg, const struct layer_walk_dir *d);
	int (*leave)(void *arg, const struct layer_walk_dir *d); /* or NULL */
	int (*entry)(void *arg, const struct layer_walk_item *i); /* no directory, no whiteout */
	int (*whiteout)(void *arg, const struct layer_walk_item *i);
};

int layer_walk(const int *layers, size_t n, const struct layer_walk_ops *ops, void *arg);

/* Opens an entry for reading, but follows no symbolic link and enters no mount. An fd or -errno. */
int layer_walk_open(int dir, const char *name, int flags);

#endif
