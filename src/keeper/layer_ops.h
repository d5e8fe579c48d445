/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: sealed files of kept sandboxes, from which others start. */
#ifndef LODGE_KEEPER_LAYER_OPS_H
#define LODGE_KEEPER_LAYER_OPS_H

#include "keeper/dispatch.h"

/* The handlers of their messages. */
int handle_seal(struct keeper *k, struct exchange *x, struct err *err);
int handle_snap(struct keeper *k, struct exchange *x, struct err *err);
int handle_layer_drop(struct keeper *k, struct exchange *x, struct err *err);
int handle_layer_sync(struct keeper *k, struct exchange *x, struct err *err);
int handle_layer_merge(struct keeper *k, struct exchange *x, struct err *err);
int handle_layer_export(struct keeper *k, struct exchange *x, struct err *err);

/* Cancels a sync of the layer; fails with EBUSY if another job reads it. */
int layer_ops_release(const char *name, struct err *err);
/* Removes what dead jobs left, and resumes removals that were interrupted. */
void layer_ops_sweep(struct keeper *k);

#endif
