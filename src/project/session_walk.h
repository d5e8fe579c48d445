/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_PROJECT_SESSION_WALK_H
#define LODGE_PROJECT_SESSION_WALK_H

#include "engine/engine.h"

/* Calls fn for every session that matches the filter, page by page, until it returns -1. fn may
 * destroy the session. */
typedef int session_walk_fn(struct engine *e, const struct caller *caller,
			    const struct store_session *s, void *arg, struct err *err);
int session_walk(struct engine *e, const struct caller *caller,
		 const struct store_session_filter *f, session_walk_fn *fn, void *arg,
		 struct err *err);

#endif
