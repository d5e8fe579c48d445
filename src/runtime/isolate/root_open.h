/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the template, layers and binds of a request as descriptors for rootfs_enter(). */
#ifndef LODGE_RUNTIME_ISOLATE_ROOT_OPEN_H
#define LODGE_RUNTIME_ISOLATE_ROOT_OPEN_H

#include "runtime/isolate/idmap.h"
#include "runtime/isolate/rootfs.h"
#include "runtime/storage/storage.h"

struct root_source {
	struct storage *storage;
	int home;
	bool rootless;
};

/* The number of layers, from the topmost, that become the writable layer instead of a lower one: 0
 * or 1. Opens the storage if the request has layers. -1 and err on failure. */
int root_open_upper_layers(const struct root_source *r, const struct keeper_create *create,
			   struct err *err);

/* `dirs`: the descriptors of the request, one per bind. The caller passes *ret as
 * ROOTFS_NONE, sets its upper layer, and closes it also on failure. */
int root_open_prepare(const struct root_source *r, const struct keeper_create *create,
		      const int *dirs, const struct idmap *idmap, struct rootfs *ret,
		      struct err *err);

#endif
