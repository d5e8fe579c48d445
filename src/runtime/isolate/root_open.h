/* SPDX-License-Identifier: Apache-2.0 */
/* From the words of a request to the descriptors rootfs_enter() works with. */
#ifndef LODGE_RUNTIME_ISOLATE_ROOT_OPEN_H
#define LODGE_RUNTIME_ISOLATE_ROOT_OPEN_H

#include "base/err.h"
#include "runtime/isolate/idmap.h"
#include "runtime/isolate/rootfs.h"
#include "runtime/storage/storage.h"
#include "wire/keeper_proto.h"

struct root_source {
	struct storage *storage;
	int home;
	bool rootless;
};

/* How many of the layers, from the topmost on, become the writable one and so are none of the
 * lower: 0 or 1. Opens the store where there are any. -1 and err where it cannot be. */
int root_open_upper_layers(const struct root_source *r, const struct keeper_create *create,
			   struct err *err);

/* `dirs`: the descriptors that came with the request, one per bind. On success *ret is the
 * caller's to rootfs_close(); the upper layer is still to be set. */
int root_open_prepare(const struct root_source *r, const struct keeper_create *create,
		      const int *dirs, const struct idmap *idmap, struct rootfs *ret,
		      struct err *err);

#endif
