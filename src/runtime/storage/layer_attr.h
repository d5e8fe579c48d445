/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes of files in a layer: those of the guest, and the marks of the overlay. */
#ifndef LODGE_RUNTIME_STORAGE_LAYER_ATTR_H
#define LODGE_RUNTIME_STORAGE_LAYER_ATTR_H

#include <linux/limits.h>
#include <stdbool.h>
#include <stddef.h>

#define LAYER_ATTR_ROOT "trusted.overlay."
#define LAYER_ATTR_USER "user.overlay."

/* True if the overlay stores its marks in user.*, because the process is not privileged in the
 * initial user namespace and mounts it so (userxattr). Attributes with the other prefix then belong
 * to the guest. */
bool layer_attr_is_user(void);
/* The name of a mark, such as "opaque". */
#define LAYER_ATTR_NAME(user, mark) ((user) ? LAYER_ATTR_USER mark : LAYER_ATTR_ROOT mark)

/* The part of a name after the overlay's prefix, or NULL if the name does not have it. */
const char *layer_attr_mark(bool user, const char *name);

/* An open file; or, for files that cannot be opened, a name in `dir`, which becomes the working
 * directory. */
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

/* Calls fn for each attribute that is valid in another layer too, until it returns non-zero. */
int layer_attr_each(struct layer_attrs *a, const struct layer_attr_of *of, layer_attr_fn *fn,
		    void *arg);
int layer_attr_set(const struct layer_attr_of *of, const char *name, const void *value, size_t len);

#endif
