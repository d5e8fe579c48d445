/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_ENGINE_SCRATCH_H
#define LODGE_ENGINE_SCRATCH_H

#include "engine/internal.h"

/* ret_features may be NULL. */
int aside_make(struct engine *e, const struct sandbox_spec *spec, unsigned *ret_features,
	       struct sandbox **ret, struct err *err);
void aside_unmake(struct engine *e, struct sandbox *sb); /* NULL is allowed */
void aside_sweep(struct engine *e);

#endif
