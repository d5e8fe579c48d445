/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of durations. Any thread may add to it. */
#ifndef LODGE_BASE_HISTOGRAM_H
#define LODGE_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 14 };

struct histogram { /* zeroed: empty */
	atomic_ullong buckets[HISTOGRAM_BUCKETS]; /* not cumulative */
	atomic_ullong count, us;
};

struct histogram_bound {
	const char *text; /* in seconds */
	uint64_t us;
};
extern const struct histogram_bound histogram_bounds[HISTOGRAM_BUCKETS];

void histogram_add(struct histogram *h, uint64_t us);

#endif
