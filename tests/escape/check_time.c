/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. Only values that no kernel accepts are used. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

/* Impossible microseconds: EINVAL means the call reached the clock. */
static int set_clock(const struct check *c)
{
	struct timeval tv = { .tv_sec = 0, .tv_usec = 5000000 };
	struct timespec ts = { .tv_sec = 0, .tv_nsec = -1 };

	(void)c;
	if (syscall(SYS_settimeofday, &tv, NULL) == 0 || errno == EINVAL)
		return broken("settimeofday reached the clock");
	if (syscall(SYS_clock_settime, CLOCK_REALTIME, &ts) == 0 || errno == EINVAL)
		return broken("clock_settime reached the clock");
	return held();
}

/* An invalid tick: only a permitted caller gets EINVAL. */
static int adjust_clock(const struct check *c)
{
	struct timex tx = { .modes = ADJ_TICK, .tick = 1 };

	(void)c;
	if (syscall(SYS_adjtimex, &tx) >= 0 || errno == EINVAL)
		return broken("adjtimex may set the tick");
	tx = (struct timex){ .modes = ADJ_TICK, .tick = 1 };
	if (syscall(SYS_clock_adjtime, CLOCK_REALTIME, &tx) >= 0 || errno == EINVAL)
		return broken("clock_adjtime may set the tick");
	return held();
}

const struct check checks_time[] = {
	{ "time-set", "the clock is not reached", set_clock, BOTH, "seccomp" },
	{ "time-adjust", "the clock's speed is not reached", adjust_clock, BOTH,
	  "seccomp,userns,caps,cgroup" },
	{ 0 },
};
