/* SPDX-License-Identifier: Apache-2.0 */
/* A container image, as an OCI image layout or as `docker save` writes it: its layers in order, and
 * its environment, user and working directory. Parses only the JSON files and checks their digests;
 * layers are returned as open files, with the digests that their bytes must have. */
#ifndef LODGE_SANDBOX_TEMPLATE_OCI_IMAGE_H
#define LODGE_SANDBOX_TEMPLATE_OCI_IMAGE_H

#include "base/sha256.h"
#include "sandbox/template/template.h"

enum { OCI_IMAGE_LAYERS_MAX = 128, OCI_IMAGE_PATH = 256 };

/* Access to the files of an image. `open` returns a descriptor for a path below its directory.
 * ERR_NOT_FOUND: it does not exist. */
struct oci_image_files {
	int (*open)(void *arg, const char *path, struct err *err);
	void *arg;
};

enum oci_image_kind { OCI_IMAGE_NONE, OCI_IMAGE_LAYOUT, OCI_IMAGE_DOCKER };

struct oci_layer {
	int fd;
	char digest[SHA256_HEX]; /* of the bytes as they are stored; "": the image does not say */
	char diff_id[SHA256_HEX]; /* of the uncompressed bytes */
};

struct oci_image {
	size_t nlayers;
	struct oci_layer layers[OCI_IMAGE_LAYERS_MAX]; /* lowest first */
	uint64_t total; /* bytes of all layers as they are stored */
	bool wants_root; /* the image names root as its user, or no user */
};

bool oci_image_is_layout(int dir);
/* The `open` of struct oci_image_files for a local directory; arg points to its descriptor. */
int oci_image_open_at(void *arg, const char *path, struct err *err);
/* Looks for an image. Fails if there are only parts of one, or an image in a format that cannot be
 * read: these are no root file system either. */
int oci_image_find(const struct oci_image_files *from, enum oci_image_kind *ret, struct err *err);
/* Copies Env, WorkingDir and User of the image into *t, unless they are already set. */
int oci_image_open(const struct oci_image_files *from, enum oci_image_kind kind, struct template *t,
		   struct oci_image *ret, struct err *err);
void oci_image_close(struct oci_image *img);

#endif
