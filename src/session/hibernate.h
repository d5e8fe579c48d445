/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_HIBERNATE_H
#define LODGE_SESSION_HIBERNATE_H

#include "engine/internal.h"

/* ACTIVE to HIBERNATED: also for one whose sandbox was found gone. */
int sleep_now(struct entry *n, const struct session_why *why, struct err *err);
/* The second half of it, from HIBERNATING: stop, seal, record. */
int sleep_finish(struct entry *n, const struct session_why *why, struct err *err);
/* What lies below the writable files of its sandbox: "" if nothing does. */
int base_layer(struct entry *n, char ret[STORE_ID], struct err *err);
/* What it used of the processors goes to its user's account, before it is ended. */
void charge(struct entry *n);
/* Its sandbox is over: the connection and its place among the active ones go. */
void end_live(struct entry *n);

#endif
