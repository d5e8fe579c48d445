/* SPDX-License-Identifier: Apache-2.0 */
/* A state machine as data: a table of states, each with its name and the set of states it may move
 * to. A move that is not in the table is refused in one place. */
#ifndef LODGE_BASE_STATE_MACHINE_H
#define LODGE_BASE_STATE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { SM_STATES_MAX = 64 };

#define SM_BIT(state) (1ull << (state))

struct sm_state {
	const char *name;
	uint64_t to; /* SM_BIT()s */
};

struct sm {
	const char *name; /* of what has these states, for messages: "session" */
	const struct sm_state *states;
	unsigned count; /* at most SM_STATES_MAX */
};

/* "?" for a number that is no state. */
const char *sm_name(const struct sm *sm, unsigned state);
/* -1 if no state has this name. */
int sm_find(const struct sm *sm, const char *name);

bool sm_may(const struct sm *sm, unsigned from, unsigned to);
/* The same with a sentence; a move that is not allowed is ERR_CONFLICT. */
int sm_check(const struct sm *sm, unsigned from, unsigned to, struct err *err);

#endif
