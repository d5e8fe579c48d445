/* SPDX-License-Identifier: Apache-2.0 */
#include "init/exec/orphan.h"

#include <unistd.h>

#include "base/clock.h"
#include "init/core/init_state.h"
#include "init/exec/agent_conn.h"
#include "init/exec/process_table.h"

/* For an engine that died before it sent deadlines. */
#define DEFAULT_US (3600 * 1000000ull)

static bool known; /* deadlines were sent */
static uint64_t idle_us, expire_us; /* clock_mono_us(); UINT64_MAX: none */

static uint64_t from_now(uint64_t ms)
{
	return ms && ms < INT64_MAX / 1000 ? clock_mono_us() + ms * 1000 : UINT64_MAX;
}

void orphan_set_deadlines(const struct agent_deadlines *d)
{
	known = true;
	idle_us = from_now(d->idle_ms);
	expire_us = from_now(d->expire_ms);
}

static bool is_busy(void)
{
	for (const struct process *r = NULL; (r = process_table_next(r));)
		if (r->state != PROCESS_DONE && !r->is_file_job)
			return true;
	return false;
}

static uint64_t end_us(void)
{
	uint64_t alone_us;

	if (!init_binding.bound || !agent_conn_is_alone(&alone_us))
		return UINT64_MAX;
	if (!known)
		return alone_us + DEFAULT_US;
	return idle_us < expire_us && !is_busy() ? idle_us : expire_us;
}

uint64_t orphan_next_timer(void)
{
	return end_us();
}

/* The end of PID 1 ends every process. The files stay, and the next engine finds them. */
void orphan_run_timers(uint64_t now_us)
{
	if (now_us >= end_us())
		_exit(0);
}
