/* SPDX-License-Identifier: Apache-2.0 */
/* Building a template from an archive. */
#ifndef LODGE_TEMPLATE_TEMPLATE_BUILD_H
#define LODGE_TEMPLATE_TEMPLATE_BUILD_H

#include "engine/engine.h"

enum template_format { TEMPLATE_ANY, TEMPLATE_ROOTFS, TEMPLATE_IMAGE };

struct template_build;
/* Creates the sandbox. An archive that has another format than this is refused. */
int template_build_new(struct engine *e, const char *name, enum template_format format,
		       struct template_build **ret, struct err *err);
/* Unpacks a tar archive, compressed or not, from fd (borrowed). Call it once. */
int template_build_fill(struct template_build *b, int fd, struct err *err);
/* Makes the unpacked files the template. ERR_CONFLICT: the name exists by now. */
int template_build_commit(struct template_build *b, const char *actor, struct err *err);
/* After filling: whether the archive was an image, and whether it expects root. */
bool template_build_is_image(const struct template_build *b);
bool template_build_wants_root(const struct template_build *b);
/* Deletes everything that is not committed. NULL is allowed. */
void template_build_free(struct template_build *b);
DEFINE_AUTO(struct template_build *, template_build_free);

#endif
