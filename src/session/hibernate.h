/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_HIBERNATE_H
#define LODGE_SESSION_HIBERNATE_H

#include "session/session.h"

/* ACTIVE to HIBERNATED, also if the sandbox is gone. */
int hibernate_session(struct session *n, const struct session_cause_opts *why, struct err *err);
/* The second half of it, from HIBERNATING: stop, seal, record. */
int hibernate_finish(struct session *n, const struct session_cause_opts *why, struct err *err);
/* hibernate_session() on request, if it is active. */
int hibernate_if_active(struct session *n, const char *actor, struct err *err);

#endif
