/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of a session's files. */
#ifndef LODGE_SNAPSHOT_SNAPSHOT_H
#define LODGE_SNAPSHOT_SNAPSHOT_H

#include "engine/engine.h"

struct snapshot_opts {
	const char *name; /* NULL: none */
	bool stop; /* instead of copying from the running sandbox, stop and resume it */
};
int session_snapshot(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		     const struct snapshot_opts *opts, struct store_snapshot *ret, struct err *err);
/* session NULL: all of the tenant. ERR_NOT_FOUND: the session has no snapshots and does not exist.
 */
int snapshot_list(struct engine *e, const struct caller *caller, const struct session_ref *session,
		  struct store_page page, struct store_snapshot_list *ret, struct err *err);
int snapshot_remove(struct engine *e, const struct caller *caller, const char *id, struct err *err);

struct session;
struct layer_reservation;
/* Copies the files of the running sandbox into a layer with its row. With the session's lock. */
int session_copy_layer(struct session *n, struct layer_reservation *l, struct err *err);

#endif
