/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SESSION_DESTROY_H
#define LODGE_SESSION_DESTROY_H

#include "engine/internal.h"

/* Tombstone, end, removal; the entry is empty afterwards. */
int destroy_now(struct entry *n, const struct session_why *why, struct err *err);
/* The second half, from DESTROYING. */
int destroy_finish(struct entry *n, struct err *err);

#endif
