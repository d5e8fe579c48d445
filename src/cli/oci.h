/* SPDX-License-Identifier: Apache-2.0 */
/* An OCI image layout on disk: which layers, in which order, and what the image says about its
 * commands. Only the JSON files are read here; layers are handed on as open files. */
#ifndef LODGE_CLI_OCI_H
#define LODGE_CLI_OCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/template.h"

enum { OCI_LAYERS_MAX = 128 };

struct oci_image {
	int dir; /* the layout */
	size_t nlayers;
	int layers[OCI_LAYERS_MAX]; /* lowest first */
	uint64_t total; /* bytes of all layers as they are stored */
	bool wants_root; /* the image says root, or nothing */
};

bool oci_is_layout(int dir);
/* Takes over `dir`, also on failure. Env, WorkingDir and User of the image go into *t, where it
 * says nothing yet. */
int oci_open(int dir, struct template *t, struct oci_image *ret, struct err *err);
void oci_close(struct oci_image *img);

#endif
