/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots as rows of the store. */
#ifndef LODGE_LAYERS_SNAPSHOT_RECORD_H
#define LODGE_LAYERS_SNAPSHOT_RECORD_H

#include "engine/engine.h"

/* `bytes` of a snapshot whose files are not counted yet. */
enum { SNAPSHOT_SIZE_UNKNOWN = -1 };
int64_t snapshot_size(const struct store_layer *l);

int snapshot_get(struct engine *e, const struct caller *caller, const char *id,
		 struct store_snapshot *ret, struct err *err);
int snapshot_search(struct engine *e, const struct store_snapshot_filter *f, struct store_page page,
		    struct store_snapshot_list *ret, struct err *err);
/* Gets a snapshot and holds its layer, as layers_hold() does. The row is read again once the layer
 * is held: a snapshot that exists then kept the layer until the hold did. */
int snapshot_hold(struct engine *e, const struct caller *caller, const char *id, const char *holder,
		  struct store_snapshot *ret, struct err *err);

#endif
