/* SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

#include <stddef.h>

const struct histogram_bound histogram_bounds[HISTOGRAM_BUCKETS] = {
	{ "0.001", 1000 },  { "0.0025", 2500 }, { "0.005", 5000 },  { "0.01", 10000 },
	{ "0.025", 25000 }, { "0.05", 50000 },	{ "0.1", 100000 },  { "0.25", 250000 },
	{ "0.5", 500000 },  { "1", 1000000 },	{ "2.5", 2500000 }, { "5", 5000000 },
	{ "10", 10000000 }, { "60", 60000000 },
};

void histogram_add(struct histogram *h, uint64_t us)
{
	size_t i = 0;

	while (i < HISTOGRAM_BUCKETS && us > histogram_bounds[i].us)
		i++;
	if (i < HISTOGRAM_BUCKETS)
		h->buckets[i]++;
	h->us += us;
	h->count++;
}
