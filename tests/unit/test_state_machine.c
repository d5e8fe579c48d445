/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state_machine.h"

#include "base/array.h"
#include "tap.h"

enum { OPEN, CLOSED, LOCKED };

static const struct state_machine_state states[] = {
	[OPEN] = { "open", SM_BIT(CLOSED) },
	[CLOSED] = { "closed", SM_BIT(OPEN) | SM_BIT(LOCKED) },
	[LOCKED] = { "locked", SM_BIT(CLOSED) },
};
static const struct state_machine door = { "door", states, ARRAY_LEN(states) };

static void only_moves_in_the_table_are_allowed(void)
{
	static const bool want[3][3] = {
		[OPEN] = { [CLOSED] = true },
		[CLOSED] = { [OPEN] = true, [LOCKED] = true },
		[LOCKED] = { [CLOSED] = true },
	};
	struct err err;

	for (unsigned from = 0; from < 3; from++)
		for (unsigned to = 0; to < 3; to++)
			CHECK((state_machine_check(&door, from, to, &err) == 0) == want[from][to]);
}

static void a_refusal_names_both_states(void)
{
	struct err err;

	CHECK(state_machine_check(&door, OPEN, LOCKED, &err) == -1);
	CHECK(err.code == ERR_CONFLICT);
	CHECK_STR(err.msg, "door: open cannot become locked");
}

static void a_number_that_is_no_state_is_refused(void)
{
	struct err err;

	CHECK(state_machine_check(&door, 3, OPEN, &err) == -1);
	CHECK(state_machine_check(&door, 64, 64, &err) == -1);
	CHECK(state_machine_check(&door, OPEN, 200, &err) == -1);
	CHECK_STR(err.msg, "door: open cannot become ?");
}

static void states_are_found_by_name(void)
{
	for (unsigned i = 0; i < door.count; i++)
		CHECK(state_machine_find(&door, state_machine_name(&door, i)) == (int)i);
	CHECK(state_machine_find(&door, "ajar") == -1 && state_machine_find(&door, "") == -1);
}

int main(void)
{
	RUN(only_moves_in_the_table_are_allowed);
	RUN(a_refusal_names_both_states);
	RUN(a_number_that_is_no_state_is_refused);
	RUN(states_are_found_by_name);
	return tap_done();
}
