/* SPDX-License-Identifier: Apache-2.0 */
/* Which limits a host enforces, and why not the others. The keeper reports it (KEEPER_HELLO). */
#ifndef LODGE_WIRE_ENFORCEMENT_H
#define LODGE_WIRE_ENFORCEMENT_H

#include "wire/keeper_proto.h"

struct enforcement {
	bool known; /* a keeper has reported it */
	unsigned features; /* enum keeper_feature */
	char disk_problem[KEEPER_MSG_SIZE]; /* why disk limits are not enforced; "": they are */
};

/* Why a limit (a field of struct limits, or "cpus") is not enforced in sandboxes with this store.
 * NULL: it is enforced, or nothing is known yet. The text may be in *f. */
const char *enforcement_problem(const struct enforcement *f, enum keeper_store store,
				const char *limit);

/* What to demand (enum keeper_demand), so that a sandbox without this limit is refused. */
unsigned enforcement_demand(const char *limit);
/* ERR_CONFLICT with the reason if something demanded is not enforced. */
int enforcement_check(const struct enforcement *f, enum keeper_store store, unsigned demand,
		      struct err *err);

enum { ENFORCEMENT_TEXT = 512 };
/* "disk limits (REASON)" and so on, of what is demanded and not enforced; "": nothing. */
const char *enforcement_describe(const struct enforcement *f, enum keeper_store store,
				 unsigned demand, char buf[ENFORCEMENT_TEXT]);

#endif
