/* SPDX-License-Identifier: Apache-2.0 */
/* A mutex that a scope holds, and waits that end at a moment of the monotonic clock. */
#ifndef LODGE_BASE_MUTEX_H
#define LODGE_BASE_MUTEX_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/auto.h"

static inline pthread_mutex_t *mutex_hold(pthread_mutex_t *m)
{
	pthread_mutex_lock(m);
	return m;
}
DEFINE_AUTO(pthread_mutex_t *, pthread_mutex_unlock);

/* Holds the mutex until the end of the scope. */
#define MUTEX_GUARD(m)                                                                             \
	auto_call(pthread_mutex_unlock) pthread_mutex_t *guard_ __attribute__((unused)) =          \
		mutex_hold(m)

/* For cond_wait_until(). */
static inline void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

/* False: clock_mono_ms() reached `until`. until < 0: no deadline. */
static inline bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *m, int64_t until)
{
	struct timespec ts = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };

	return (until < 0 ? pthread_cond_wait(cond, m) : pthread_cond_timedwait(cond, m, &ts)) !=
	       ETIMEDOUT;
}

#endif
