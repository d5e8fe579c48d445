/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SANDBOX_KEEPER_STATS_H
#define LODGE_SANDBOX_KEEPER_STATS_H

#include "sandbox/keeper_client.h"

enum { KEEPER_STATS_BATCH = 16 }; /* few enough for the buffer of the socket */

struct keeper_measurement {
	const char *sandbox;
	bool known; /* false: it has ended, or has no cgroup */
	struct keeper_stats stats;
};

/* Measures up to KEEPER_STATS_BATCH sandboxes with requests that are sent in one go: a round trip
 * for each takes longer than reading its files. */
int keeper_stats_read(struct keeper_client *k, struct keeper_measurement *items, size_t n,
		      struct err *err);

#endif
