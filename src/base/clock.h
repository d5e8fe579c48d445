/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of every program. Monotonic time measures and limits, wall-clock time is for people,
 * boot time also counts while the machine is suspended. */
#ifndef LODGE_BASE_CLOCK_H
#define LODGE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

int64_t clock_mono_ms(void);
int64_t clock_mono_us(void);
int64_t clock_mono_ns(void);
int64_t clock_wall_ms(void);
int64_t clock_boot_ms(void);

/* The moment `ms` from now on the given clock, for calls that take an absolute timeout. */
struct timespec clock_deadline(clockid_t id, int64_t ms);

#endif
