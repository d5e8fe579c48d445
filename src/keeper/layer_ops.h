/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: sealed files of kept sandboxes, from which others start. */
#ifndef LODGE_KEEPER_LAYER_OPS_H
#define LODGE_KEEPER_LAYER_OPS_H

#include "keeper/keeper.h"

/* The files of a stopped sandbox become a layer. */
int layer_ops_seal(struct keeper *k, const char *id, const char *name, struct err *err);
int layer_ops_snap(struct keeper *k, const char *id, const char *name, struct keeper_job *ret,
		   struct err *err);
int layer_ops_drop(struct keeper *k, const char *name, struct err *err);
int layer_ops_sync(struct keeper *k, const char *name, struct keeper_job *ret, struct err *err);
int layer_ops_merge(struct keeper *k, const struct keeper_layer *l, struct keeper_job *ret,
		    struct err *err);
int layer_ops_export(struct keeper *k, const struct keeper_layer *l, int fd, struct keeper_job *ret,
		     struct err *err);
/* Cancels a sync of the layer; fails with EBUSY if another job reads it. */
int layer_ops_release(const char *name, struct err *err);
/* Removes what dead jobs left, and resumes removals that were interrupted. */
void layer_ops_sweep(struct keeper *k);

#endif
