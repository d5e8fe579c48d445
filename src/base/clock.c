/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

static int64_t read_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_mono_ms(void)
{
	return read_ns(CLOCK_MONOTONIC) / 1000000;
}

int64_t clock_mono_us(void)
{
	return read_ns(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_mono_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

int64_t clock_wall_ms(void)
{
	return read_ns(CLOCK_REALTIME) / 1000000;
}

int64_t clock_boot_ms(void)
{
	return read_ns(CLOCK_BOOTTIME) / 1000000;
}

struct timespec clock_deadline(clockid_t id, int64_t ms)
{
	int64_t ns = read_ns(id) + ms % 1000 * 1000000;

	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000 + ms / 1000),
				  .tv_nsec = (long)(ns % 1000000000) };
}
