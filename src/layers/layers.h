/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed files: how they are stacked, held and removed.
 *
 * A layer exists as files and as a row of the store. The files are made before the row and
 * removed after it, so a crash can only leave files without a row, which nothing can refer to;
 * layers_remove_strays() finds and removes them. */
#ifndef LODGE_LAYERS_LAYERS_H
#define LODGE_LAYERS_LAYERS_H

#include "engine/internal.h"

enum {
	LAYER_GRACE_MS = 60 * 1000, /* a layer that was just made is not named yet */
	LAYERS_FLATTEN = 16, /* stacks that are deeper become one layer, in the background */
};

/* A layer whose files are made before its row: they do not count as strays until
 * layers_unreserve(). */
struct layer_reservation {
	struct layer_reservation *next; /* of engine.layers.reserved */
	struct engine *engine; /* NULL: not reserved */
	char id[STORE_ID];
};
int layers_reserve(struct engine *e, struct layer_reservation *l, struct err *err);
void layers_unreserve(struct layer_reservation *l); /* NULL and one not reserved are allowed */
DEFINE_AUTO(struct layer_reservation *, layers_unreserve);

/* Adds the row of a layer whose files exist. */
int layers_add(struct engine *e, const char *id, const char *parent, const char *template,
	       uint64_t bytes, struct err *err);

/* Nobody removes it, nor takes its files for a sandbox, until the hold of this name is released, or
 * the engine starts again. ERR_CONFLICT: it is gone. `holder` begins with one of those that
 * layers_forget_holds() knows. */
int layers_hold(struct engine *e, const char *layer, const char *holder, struct err *err);
void layers_release(struct engine *e, const char *layer, const char *holder);
void layers_forget_holds(struct engine *e);

/* Like layers_list_stack(), also of a stack that is too deep to be used until it is flattened. */
int layers_list_deep_stack(struct engine *e, const char *top, char (*ret)[STORE_ID],
			   size_t *ret_count, struct err *err);

/* Files of layers that have no row. */
int layers_remove_strays(struct engine *e);

/* The layers of a stack, topmost first: ids into ret, at most KEEPER_LAYERS_MAX. */
int layers_list_stack(struct engine *e, const char *top, char (*ret)[STORE_ID], size_t *ret_count,
		      struct err *err);
int layers_collect(struct engine *e); /* removes unreferenced layers; returns how many */

#endif
