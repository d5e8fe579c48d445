/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-soak: sandboxes of every kind are created, used and destroyed; nothing may grow. */
#ifndef LODGE_TESTS_SOAK_H
#define LODGE_TESTS_SOAK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct keeper_client;

struct soak {
	struct keeper_client *keeper;
	const char *home, *lodge; /* lodge: the program, for one-shot runs */
	char run[96]; /* the keeper's directory of this home */
	pid_t keeper_pid;
	uint64_t random;
	bool has_pool, has_disk, has_cgroup;
	int share; /* a host directory that some sandboxes see */
};

/* ---- cycle.c -------------------------------------------------------------------------------- */
/* One sandbox from start to end. -1: it did not do what it should; err has the reason. */
int cycle_run(struct soak *s, struct err *err);
/* One-time setup: the volume, the skeleton of the root. */
int cycle_warm_up(struct soak *s, struct err *err);
unsigned cycle_below(struct soak *s, unsigned n); /* a random number */
/* The number of runs of each kind, as one line. */
void cycle_print(void);

/* ---- gauge.c -------------------------------------------------------------------------------- */
enum gauge {
	KEEPER_FDS,
	KEEPER_KB,
	KEEPER_MOUNTS,
	KEEPER_CHILDREN,
	ENGINE_FDS,
	ENGINE_KB,
	ENGINE_MOUNTS,
	CGROUPS,
	HOME_FILES,
	RUN_FILES,
	LOOPS,
	NET_NS, /* of the whole machine, like the next two */
	USER_NS,
	MOUNTS,
	GAUGES,
};

struct gauges {
	long v[GAUGES];
};

/* Waits until the kernel has caught up: nothing is above `base`, or a time limit has passed. */
void gauge_read(const struct soak *s, const struct gauges *base, long cycles, struct gauges *ret);
void gauge_print(const struct gauges *g);
/* The number of gauges above base by more than allowed; prints each on standard error. */
int gauge_grown(const struct gauges *base, const struct gauges *now, long cycles);

#endif
