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

struct state_machine_state {
	const char *name;
	uint64_t to; /* SM_BIT()s */
};

struct state_machine {
	const char *name; /* of what has these states, for messages: "session" */
	const struct state_machine_state *states;
	unsigned count; /* at most SM_STATES_MAX */
};

/* "?" for a number that is no state. */
const char *state_machine_name(const struct state_machine *sm, unsigned state);
/* -1 if no state has this name. */
int state_machine_find(const struct state_machine *sm, const char *name);

bool state_machine_may(const struct state_machine *sm, unsigned from, unsigned to);
/* The same with a sentence; a move that is not allowed is ERR_CONFLICT. */
int state_machine_check(const struct state_machine *sm, unsigned from, unsigned to,
			struct err *err);

#endif
