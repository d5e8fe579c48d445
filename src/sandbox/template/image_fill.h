/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the files of an image: each layer becomes a template of its own, on top of the one below,
 * whose name is computed from the content of all layers up to it. A layer that exists is not
 * unpacked again, so images with the same lower layers share them. Every layer is read and hashed
 * in any case: the name alone gives nobody its files. */
#ifndef LODGE_SANDBOX_TEMPLATE_IMAGE_FILL_H
#define LODGE_SANDBOX_TEMPLATE_IMAGE_FILL_H

#include "sandbox/template/archive_unpack.h"
#include "sandbox/template/oci_image.h"

/* How the caller makes sandboxes and templates. */
struct image_fill_ops {
	/* A sandbox to fill. ERR_NOT_FOUND: there is no such template. */
	int (*create)(void *arg, const char *template, struct sandbox **ret, struct err *err);
	/* Makes its files the template, and frees `sb` on success. ERR_CONFLICT: it exists. */
	int (*seal)(void *arg, struct sandbox *sb, const char *template, struct err *err);
	void (*destroy)(void *arg, struct sandbox *sb);
	/* Drops a template unless something uses it. */
	void (*drop)(void *arg, const char *template);
	void *arg;
};

struct image_fill {
	struct image_fill_ops ops;
	struct archive_unpack unpack;
	unsigned flags; /* template_fill_flags() */
	char top[KEEPER_ID_SIZE]; /* the uppermost layer of the image that exists; or empty */
};

/* *ret is a sandbox on top of all layers, without files of its own. If it is not sealed, destroy it
 * and call image_fill_undo(). */
int image_fill(struct image_fill *f, const struct oci_image *img, struct sandbox **ret,
	       struct err *err);
/* Drops the layers that nothing uses. */
void image_fill_undo(struct image_fill *f);

/* The `open` of struct oci_image_files for an image whose files are at the root of a sandbox, which
 * is `arg`. */
int image_fill_open_part(void *arg, const char *path, struct err *err);

#endif
