/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a sandbox that are equal for all requests: namespaces, devices and cgroups. The
 * keeper makes some in advance, while it has no request. */
#ifndef LODGE_KEEPER_SLOT_PARTS_H
#define LODGE_KEEPER_SLOT_PARTS_H

#include "keeper/keeper.h"

/* Unique among all keepers, because slots and cgroups of an earlier one may still exist. */
unsigned long long slot_parts_serial(struct keeper *k);
/* `inner`: the one id inside, for a namespace that maps only one. The limits are in force. */
int slot_parts_take(struct keeper *k, uid_t inner, const struct limits *limits,
		    struct sandbox_parts *ret, struct err *err);
/* Changes a cgroup from the default limits, with which parts are made in advance, to these. */
int slot_parts_set_limits(struct keeper *k, const char *group, const struct limits *limits,
			  bool entered, struct err *err);
/* Makes one set in advance; false when there are enough. */
bool slot_parts_make_ahead(struct keeper *k);
/* Of a running slot: closes what its claim does not need. Every descriptor that the keeper holds is
 * copied by the next clone. */
void slot_parts_trim(struct sandbox_parts *p);
/* After use: closes the keeper's descriptors. */
void slot_parts_close(struct sandbox_parts *p);
/* Of parts that were never used: removes their cgroups as well. */
void slot_parts_drop(struct keeper *k, struct sandbox_parts *p);

#endif
