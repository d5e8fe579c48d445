/* SPDX-License-Identifier: Apache-2.0 */
/* One walk through several layers as if they were merged: the rules of the overlay, in one place.
 */
#ifndef LODGE_RUNTIME_STORAGE_LAYER_WALK_H
#define LODGE_RUNTIME_STORAGE_LAYER_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum { LAYER_WALK_LAYERS_MAX = 64, LAYER_WALK_DEPTH_MAX = 8192 };

struct layer_walk_item {
	unsigned layer; /* that it comes from */
	int dir; /* its directory there */
	const char *path; /* from the top: "a/b/name" */
	const char *name;
	struct stat st;
	bool alone; /* nothing of a template can be at this place */
};

struct layer_walk_dir {
	int fd; /* in the topmost layer that has it */
	const char *path; /* from the top: "a/b/"; the top itself is "" */
	const char *name;
	struct stat st;
	bool opaque; /* shuts out what a template has at this place */
	bool whiteouts; /* at leave: there were some */
};

/* Anything but 0 ends the walk and is its result. */
struct layer_walk_ops {
	int (*enter)(void *arg, const struct layer_walk_dir *d);
	int (*leave)(void *arg, const struct layer_walk_dir *d);
	int (*entry)(void *arg, const struct layer_walk_item *i); /* no directory, no whiteout */
	int (*whiteout)(void *arg, const struct layer_walk_item *i);
};

int layer_walk(const int *layers, size_t n, const struct layer_walk_ops *ops, void *arg);

/* Opens an entry for reading, not through a link, not into a mount. Descriptor or -errno. */
int layer_walk_open(int dir, const char *name, int flags);

#endif
