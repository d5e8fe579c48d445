/* SPDX-License-Identifier: Apache-2.0 */
/* An OCI image layout: its layers in order, and its environment, user and working directory. Parses
 * only the JSON files; layers are returned as open files. */
#ifndef LODGE_SANDBOX_TEMPLATE_OCI_IMAGE_H
#define LODGE_SANDBOX_TEMPLATE_OCI_IMAGE_H

#include "sandbox/template/template.h"

enum { OCI_IMAGE_LAYERS_MAX = 128 };

/* Access to the files of a layout. `open` returns a descriptor for a path below the layout. */
struct oci_image_files {
	int (*open)(void *arg, const char *path, struct err *err);
	void *arg;
};

struct oci_image {
	size_t nlayers;
	int layers[OCI_IMAGE_LAYERS_MAX]; /* lowest first */
	uint64_t total; /* bytes of all layers as they are stored */
	bool wants_root; /* the image names root as its user, or no user */
};

bool oci_image_is_layout(int dir);
/* The `open` of struct oci_image_files for a local directory; arg points to its descriptor. */
int oci_image_open_at(void *arg, const char *path, struct err *err);
/* Copies Env, WorkingDir and User of the image into *t, unless they are already set. */
int oci_image_open(const struct oci_image_files *from, struct template *t, struct oci_image *ret,
		   struct err *err);
void oci_image_close(struct oci_image *img);

#endif
