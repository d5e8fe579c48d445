/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: sealed files of kept sandboxes, from which others start. dispatch.h declares the handlers
 * of their messages. */
#ifndef LODGE_KEEPER_LAYER_OPS_H
#define LODGE_KEEPER_LAYER_OPS_H

#include "keeper/keeper.h"

/* Cancels a sync of the layer; fails with EBUSY if another job reads it. */
int layer_ops_release(const char *name, struct err *err);
/* Removes what dead jobs left, and resumes removals that were interrupted. */
void layer_ops_sweep(struct keeper *k);

#endif
