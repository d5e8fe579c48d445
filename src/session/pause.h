/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_PAUSE_H
#define LODGE_SESSION_PAUSE_H

#include "session/session.h"

/* The processes of its sandbox; the record is not touched. */
int session_set_frozen(struct session *n, bool frozen, struct err *err);
/* Thaws it if it is paused. */
int session_thaw(struct session *n, const char *actor, struct err *err);

#endif
