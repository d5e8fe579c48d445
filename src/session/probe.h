/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_PROBE_H
#define LODGE_SESSION_PROBE_H

#include "session/session.h"

/* Whether anything happens inside without anybody connected: processes, cpu time. */
bool session_is_working(struct session *n);
/* FAILED with a sandbox that lives after all: ACTIVE again, with the deadlines it had. */
int session_revive(struct session *n, struct err *err);

#endif
