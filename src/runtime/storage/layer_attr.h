/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes of what lies in a layer: the owner's own, and the overlay's marks. */
#ifndef LODGE_RUNTIME_STORAGE_LAYER_ATTR_H
#define LODGE_RUNTIME_STORAGE_LAYER_ATTR_H

#include <linux/limits.h>
#include <stdbool.h>
#include <stddef.h>

#define LAYER_ATTR_ROOT "trusted.overlay."
#define LAYER_ATTR_USER "user.overlay."

/* Where the overlay of a process with our rights keeps its marks: without rights over the whole
 * machine in user.*, as it is mounted then. The other prefix is the guest's own. */
bool layer_attr_is_user(void);
const char *layer_attr_opaque(bool user);
const char *layer_attr_origin(bool user);

/* The part of a name behind the overlay's prefix, or NULL if it is none of the overlay's. */
const char *layer_attr_mark(bool user, const char *name);

/* What has attributes: an open file; or, for those that cannot be opened, a name, and `dir` becomes
 * the working directory. */
struct layer_attr_of {
	int fd, dir;
	const char *name; /* or NULL */
};

struct layer_attrs {
	bool user;
	char list[XATTR_LIST_MAX];
	char value[XATTR_SIZE_MAX];
};

typedef int layer_attr_fn(void *arg, const char *name, const void *value, size_t len);

/* Calls fn for each that still means something in another layer; anything but 0 ends it. */
int layer_attr_each(struct layer_attrs *a, const struct layer_attr_of *of, layer_attr_fn *fn,
		    void *arg);
int layer_attr_set(const struct layer_attr_of *of, const char *name, const void *value, size_t len);

#endif
