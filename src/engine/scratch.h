/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_ENGINE_SCRATCH_H
#define LODGE_ENGINE_SCRATCH_H

#include "engine/internal.h"

/* ret_features may be NULL. */
int scratch_create(struct engine *e, const struct sandbox_spec *spec, unsigned *ret_features,
		   struct sandbox **ret, struct err *err);
void scratch_destroy(struct engine *e, struct sandbox *sb); /* NULL is allowed */
void scratch_sweep(struct engine *e);

#endif
