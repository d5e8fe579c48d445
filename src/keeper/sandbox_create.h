/* SPDX-License-Identifier: Apache-2.0 */
/* Creates sandboxes, from a slot of the pool or from nothing. */
#ifndef LODGE_KEEPER_SANDBOX_CREATE_H
#define LODGE_KEEPER_SANDBOX_CREATE_H

#include "keeper/keeper.h"

/* `dirs`: the descriptors of the request, one per bind. */
int sandbox_create(struct keeper *k, const char *id, const struct keeper_create *c, const int *dirs,
		   struct keeper_reply *reply, int *ret_fd, struct err *err);
/* Opens the layers of a sandbox or slot and creates its writable one. */
int sandbox_create_root(struct keeper *k, const char *id, const struct keeper_create *c,
			const int *dirs, const struct idmap *idmap, struct rootfs *ret,
			struct err *err);

#endif
