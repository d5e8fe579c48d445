/* SPDX-License-Identifier: Apache-2.0 */
/* A state machine as data: a table of states, each with its name and the states that may follow it.
 */
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
	const char *name; /* name of the object for messages, such as "session" */
	const struct state_machine_state *states;
	unsigned count; /* at most SM_STATES_MAX */
};

/* Returns "?" for an invalid state. */
const char *state_machine_name(const struct state_machine *sm, unsigned state);
/* Returns -1 if no state has this name. */
int state_machine_find(const struct state_machine *sm, const char *name);

bool state_machine_may(const struct state_machine *sm, unsigned from, unsigned to);
/* The same with an error: ERR_CONFLICT if the transition is not allowed. */
int state_machine_check(const struct state_machine *sm, unsigned from, unsigned to,
			struct err *err);

#endif
