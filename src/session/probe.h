/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_PROBE_H
#define LODGE_SESSION_PROBE_H

#include "engine/internal.h"

/* Whether anything happens inside without anybody connected: processes, cpu time. */
bool is_working(struct entry *n);
/* FAILED with a sandbox that lives after all: ACTIVE again, with the deadlines it had. */
int revive(struct entry *n, struct err *err);

#endif
