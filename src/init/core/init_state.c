/* SPDX-License-Identifier: Apache-2.0 */
#include "init/core/init_state.h"

#include <time.h>

struct binding init_binding;

uint64_t init_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}
