/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_TESTS_STANDS_STILL_H
#define LODGE_TESTS_STANDS_STILL_H

#include <stdbool.h>
#include <unistd.h>

#include "sandbox/sandbox.h"

/* Whether a sandbox that computes comes to use no processor time. A task that was frozen may still
 * be leaving the processor, and its time is added then. */
static inline bool stands_still(struct sandbox *sb, struct keeper_stats *st, struct err *why)
{
	uint64_t before = 0;

	for (int i = 0; i < 300; i++) {
		if (sandbox_stats(sb, st, why) < 0)
			return false;
		if (i > 0 && st->cpu_us == before)
			return true;
		before = st->cpu_us;
		usleep(200000);
	}
	return false;
}

#endif
