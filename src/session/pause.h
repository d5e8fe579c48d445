/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_PAUSE_H
#define LODGE_SESSION_PAUSE_H

#include "engine/engine.h"

struct session;

/* Freezes its processes; memory is kept. Any use thaws them. */
int session_pause(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		  int64_t if_version, struct store_session *ret, struct err *err);
int session_unpause(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		    int64_t if_version, struct store_session *ret, struct err *err);

/* The processes of its sandbox; the record is not touched. */
int session_set_frozen(struct session *n, bool frozen, struct err *err);
/* Thaws it if it is paused. */
int session_thaw(struct session *n, const char *actor, struct err *err);

#endif
