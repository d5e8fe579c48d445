/* SPDX-License-Identifier: Apache-2.0 */
/* A state machine as a table of states, each with its name and the states that may follow it. */
#ifndef LODGE_BASE_STATE_MACHINE_H
#define LODGE_BASE_STATE_MACHINE_H

#include <stdint.h>

#include "base/err.h"

#define SM_BIT(state) (1ull << (state))

struct state_machine_state {
	const char *name;
	uint64_t to; /* SM_BIT()s */
};

struct state_machine {
	const char *name; /* name of the object for messages, such as "session" */
	const struct state_machine_state *states;
	unsigned count; /* at most 64 */
};

/* Returns "?" for an invalid state. */
const char *state_machine_name(const struct state_machine *sm, unsigned state);
/* Returns -1 if no state has this name. */
int state_machine_find(const struct state_machine *sm, const char *name);
/* Returns 0, or ERR_CONFLICT if the transition is not allowed. */
int state_machine_check(const struct state_machine *sm, unsigned from, unsigned to,
			struct err *err);

#endif
