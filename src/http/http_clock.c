/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http_clock.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"

void http_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

bool http_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ms)
{
	struct timespec t = clock_deadline(CLOCK_MONOTONIC, (int64_t)ms);

	return pthread_cond_timedwait(cond, lock, &t) != ETIMEDOUT;
}
