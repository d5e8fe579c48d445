/* SPDX-License-Identifier: Apache-2.0 */
/* An OCI image layout: which layers, in which order, and what the image says about its
 * commands. Only the JSON files are read here; layers are handed on as open files. */
#ifndef LODGE_SANDBOX_TEMPLATE_OCI_IMAGE_H
#define LODGE_SANDBOX_TEMPLATE_OCI_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/template/template.h"

enum { OCI_IMAGE_LAYERS_MAX = 128 };

/* Where the layout is. `open`: a descriptor of one of its files, by a path below the layout. */
struct oci_image_files {
	int (*open)(void *arg, const char *path, struct err *err);
	void *arg;
};

struct oci_image {
	size_t nlayers;
	int layers[OCI_IMAGE_LAYERS_MAX]; /* lowest first */
	uint64_t total; /* bytes of all layers as they are stored */
	bool wants_root; /* the image says root, or nothing */
};

bool oci_image_is_layout(int dir);
/* From a directory of one's own: the `open` of struct oci_image_files, whose arg is a pointer to
 * its descriptor. */
int oci_image_open_at(void *arg, const char *path, struct err *err);
/* Env, WorkingDir and User of the image go into *t, where it
 * says nothing yet. */
int oci_image_open(const struct oci_image_files *from, struct template *t, struct oci_image *ret,
		   struct err *err);
void oci_image_close(struct oci_image *img);

#endif
