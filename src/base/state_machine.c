/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state_machine.h"

#include <string.h>

const char *sm_name(const struct sm *sm, unsigned state)
{
	return state < sm->count ? sm->states[state].name : "?";
}

int sm_find(const struct sm *sm, const char *name)
{
	for (unsigned i = 0; i < sm->count; i++)
		if (strcmp(sm->states[i].name, name) == 0)
			return (int)i;
	return -1;
}

bool sm_may(const struct sm *sm, unsigned from, unsigned to)
{
	return from < sm->count && to < sm->count && (sm->states[from].to & SM_BIT(to));
}

int sm_check(const struct sm *sm, unsigned from, unsigned to, struct err *err)
{
	if (sm_may(sm, from, to))
		return 0;
	return err_set(err, ERR_CONFLICT, "%s: %s cannot become %s", sm->name, sm_name(sm, from),
		       sm_name(sm, to));
}
