/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"

#include "base/clock.h"
#include "engine/internal.h"

/* The wall clock is read once; after that time passes as it does for CLOCK_BOOTTIME, so that a
 * clock set wrong, or right again, ends nobody's session. */
int64_t engine_now(struct engine *e)
{
	if (e->opts.clock)
		return e->opts.clock(e->opts.clock_arg);
	return e->epoch_ms + clock_boot_ms() - e->boot_ms;
}

int engine_list_events(struct engine *e, const struct store_event_filter *f, unsigned limit,
		       struct store_event_list *ret, struct err *err)
{
	return STORE_CALL(e, store_event_list, f, limit, ret, err);
}

int engine_events(struct engine *e, int64_t since, const char *tenant, const char *session,
		  unsigned limit, struct store_event_list *ret, struct err *err)
{
	return STORE_CALL(e, store_event_since, since, tenant, session, limit, ret, err);
}

void engine_wake_timers(struct engine *e)
{
	MUTEX_GUARD(&e->mutex);
	e->timers.wake_requested = true;
	pthread_cond_signal(&e->timers.wake);
}
