/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_PROBE_H
#define LODGE_SESSION_PROBE_H

#include "session/session.h"

/* Whether processes work in the sandbox although no client is connected. */
bool session_is_working(struct session *n);
/* FAILED to ACTIVE for a sandbox that runs after all, with its former deadlines. */
int session_revive(struct session *n, struct err *err);

#endif
