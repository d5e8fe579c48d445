/* SPDX-License-Identifier: Apache-2.0 */
/* Making the files of a template: a sandbox is filled, and sealed afterwards. Whatever the archives
 * hold is unpacked in there; another sandbox decompresses. */
#ifndef LODGE_SANDBOX_TEMPLATE_TEMPLATE_FILL_H
#define LODGE_SANDBOX_TEMPLATE_TEMPLATE_FILL_H

#include "base/err.h"
#include "sandbox/template/oci_image.h"
#include "sandbox/sandbox.h"
#include "sandbox/template/template.h"
#include "sandbox/template/archive_unpack.h"

/* The sandbox to fill, with room for so many bytes; 0: for as many as make sense. */
struct sandbox_spec template_fill_spec(uint64_t bytes);
/* The one that has gzip and the others; with room for so many bytes of files, 0: none. */
struct sandbox_spec template_fill_host_spec(uint64_t bytes);
/* Flags of the job that unpacks a root, by enum keeper_feature. */
unsigned template_fill_flags(unsigned features);

/* The layers of an image, lowest first. */
int template_fill_layers(struct archive_unpack *u, const struct oci_image *img, unsigned flags,
			 struct err *err);
/* A name becomes a number, by the /etc/passwd of what was filled: later, in a sandbox of an
 * ordinary user, there is only one user and its number has to be known before the sandbox is made.
 */
int template_fill_user(struct sandbox *sb, struct template *t, struct err *err);

#endif
