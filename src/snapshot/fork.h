/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SNAPSHOT_FORK_H
#define LODGE_SNAPSHOT_FORK_H

#include "engine/engine.h"

/* Creates `count` sessions from the files of this one, all or none: from a snapshot of it, or with
 * NULL from its current files. They get its owner, template and settings. keys: NULL, or one for
 * each. ret: an array of `count` records. */
int session_fork(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		 const char *snapshot, unsigned count, const struct store_binding *keys,
		 struct store_session *ret, struct err *err);
/* Returns the session to one of its snapshots. A running sandbox is ended and resumed from there.
 */
int session_rollback(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		     const char *snapshot, int64_t if_version, struct store_session *ret,
		     struct err *err);

#endif
