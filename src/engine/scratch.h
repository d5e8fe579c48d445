/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch sandboxes: they belong to no session. A template is built or inspected in one. */
#ifndef LODGE_ENGINE_SCRATCH_H
#define LODGE_ENGINE_SCRATCH_H

#include "base/err.h"
#include "wire/keeper_proto.h"

struct engine;
struct sandbox;
struct sandbox_spec;

enum { SCRATCH_MAX = 64 };

struct scratch { /* sandboxes that could not be destroyed yet; engine.mutex */
	char ids[SCRATCH_MAX][KEEPER_ID_SIZE];
	unsigned count;
};

/* ret_features may be NULL. */
int scratch_create(struct engine *e, const struct sandbox_spec *spec, unsigned *ret_features,
		   struct sandbox **ret, struct err *err);
void scratch_destroy(struct engine *e, struct sandbox *sb); /* NULL is allowed */
void scratch_sweep(struct engine *e); /* tries again to destroy those that could not be */

#endif
