/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: the files of an ended sandbox, as the lowest layer of others. */
#ifndef LODGE_KEEPER_TEMPLATE_OPS_H
#define LODGE_KEEPER_TEMPLATE_OPS_H

#include "keeper/keeper.h"

int template_ops_seal(struct keeper *k, struct sandbox_record *sb, const char *name,
		      struct err *err);
int template_ops_drop(struct keeper *k, const char *name, struct err *err);
/* A sandbox of this template was destroyed: drops a layer of an image that nothing else uses. */
void template_ops_release(struct keeper *k, const char *name);
/* Drops the layers of images that a build left behind when it was killed. */
void template_ops_sweep(struct keeper *k);
/* LOCK_SH while a sandbox is created, LOCK_EX while a template is removed. An fd to close, or
 * -errno. */
int template_ops_lock(struct keeper *k, int how);

#endif
