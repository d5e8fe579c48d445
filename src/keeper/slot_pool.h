/* SPDX-License-Identifier: Apache-2.0 */
/* The pool: sandboxes started in advance. Half of them wait for any root, half have the default one
 * in place. A slot is given to one guest and never to another. */
#ifndef LODGE_KEEPER_SLOT_POOL_H
#define LODGE_KEEPER_SLOT_POOL_H

#include "keeper/keeper.h"

/* The parts of a sandbox that are equal for all requests: namespaces, devices and cgroups. The
 * keeper makes some in advance, while it has no request. `inner`: the one id inside, for a
 * namespace that maps only one. The limits are in force. */
int slot_pool_take_parts(struct keeper *k, uid_t inner, const struct limits *limits,
			 struct sandbox_parts *ret, struct err *err);
/* Changes a claimed slot from the default limits, with which it was made, to these. */
int slot_pool_set_limits(struct keeper *k, const char *group, pid_t init,
			 const struct limits *limits, struct err *err);
/* After use: closes the keeper's descriptors. */
void slot_pool_close_parts(struct sandbox_parts *p);
/* Of parts that were never used: removes their cgroups as well. */
void slot_pool_drop_parts(struct keeper *k, struct sandbox_parts *p);

/* Names of slots begin with it, and no name of a sandbox does. */
#define SLOT_POOL_PREFIX "p."

struct slot {
	char name[KEEPER_ID_SIZE];
	pid_t pid;
	uint64_t start; /* start time of the process: detects a reused pid */
	int64_t made_ms;
	struct sandbox_parts parts;
	bool rooted; /* has the default root, is bound to the default user and has a shell ready */
	uint32_t store; /* of that root; on disk its files are s-NAME */
};

/* Removes a slot that fits from the pool, or NULL. */
struct slot *slot_pool_take(struct keeper *k, const struct keeper_create *c);
/* `discard`: the slot was not claimed, so its process and cgroups end with it. */
void slot_pool_free(struct keeper *k, struct slot *s, bool discard);
bool slot_pool_is_slot(const char *id);
int slot_pool_resize(struct keeper *k, const struct keeper_pool *pool, struct err *err);
/* True if the next create might find nothing prepared. */
bool slot_pool_is_short(const struct keeper *k);
/* After a child was reaped: drops slots whose process has exited. True if there were any. */
bool slot_pool_drop_dead(struct keeper *k);
/* Time until the oldest slot expires; -1: no slot does. */
int slot_pool_next_expiry_ms(const struct keeper *k);
/* Prepares one slot or one set of parts; false when nothing is missing. */
bool slot_pool_fill_one(struct keeper *k);

#endif
