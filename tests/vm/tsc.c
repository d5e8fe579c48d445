/* SPDX-License-Identifier: Apache-2.0 */
/* kHz of this processor's time stamp counter. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { TSC_US = 200000 };

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

int main(void)
{
	uint64_t us = now_us(), ticks = __rdtsc();

	usleep(TSC_US);
	us = now_us() - us;
	ticks = __rdtsc() - ticks;
	printf("%llu\n", (unsigned long long)(ticks * 1000 / us));
	return 0;
}
