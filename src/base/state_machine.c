/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state_machine.h"

#include <string.h>

const char *state_machine_name(const struct state_machine *sm, unsigned state)
{
	return state < sm->count ? sm->states[state].name : "?";
}

int state_machine_find(const struct state_machine *sm, const char *name)
{
	for (unsigned i = 0; i < sm->count; i++)
		if (strcmp(sm->states[i].name, name) == 0)
			return (int)i;
	return -1;
}

int state_machine_check(const struct state_machine *sm, unsigned from, unsigned to, struct err *err)
{
	if (from < sm->count && to < sm->count && (sm->states[from].to & SM_BIT(to)))
		return 0;
	return err_set(err, ERR_CONFLICT, "%s: %s cannot become %s", sm->name,
		       state_machine_name(sm, from), state_machine_name(sm, to));
}
