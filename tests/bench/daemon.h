/* SPDX-License-Identifier: Apache-2.0 */
/* A lodged on loopback, which ends with this process. */
#ifndef LODGE_TESTS_BENCH_DAEMON_H
#define LODGE_TESTS_BENCH_DAEMON_H

#include "bench.h"
#include "client.h"

struct daemon {
	pid_t pid;
	int port;
	char home[256];
};

/* A lodged whose home is beside the bench's; settings are "LODGE_NAME=VALUE", up to a NULL. */
void daemon_start(const struct bench *b, struct daemon *d, const char *name,
		  const char *const *settings);
/* Destroys every session first. */
void daemon_stop(struct daemon *d);
/* Resident memory, and bytes in memory files it has open. */
double daemon_kb(const struct daemon *d);
double daemon_memfd_kb(const struct daemon *d);
double daemon_cpu_s(const struct daemon *d);
/* Ends the processes of an earlier run. */
void daemon_sweep(const struct bench *b, const char *name);

#endif
