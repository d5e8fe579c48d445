/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper remembers of each sandbox: a table in memory, and one small record beside the
 * sandbox's socket from which a later keeper knows it again. No descriptor is held per sandbox, so
 * that thousands of them do not make the next clone slow. */
#ifndef LODGE_KEEPER_BOX_H
#define LODGE_KEEPER_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/keeper.h"

struct box {
	struct box *next;
	char id[KEEPER_ID_SIZE];
	char group[KEEPER_ID_SIZE]; /* name of its cgroups: the pool slot's, if it was one */
	char template[KEEPER_ID_SIZE]; /* its files lie below this sandbox's */
	pid_t pid;
	uint64_t start; /* of the process, in clock ticks since boot: tells a reused pid */
	uid_t base; /* first host id of its range */
	uint32_t store, class;
};

struct box_table {
	struct box *buckets[4096];
	size_t count;
};

struct box *box_find(struct box_table *t, const char *id);
/* Copies *b into the table; NULL without memory. */
struct box *box_add(struct box_table *t, const struct box *b);
void box_remove(struct box_table *t, const char *id);
typedef void box_each_fn(struct box *b, void *arg);
void box_each(struct box_table *t, box_each_fn *fn, void *arg);

/* In the directory `dir`, the sandbox's own. 0 or -errno. */
int box_record_write(int dir, const struct box *b);
int box_record_read(int dir, struct box *ret);

/* Start time of a process; 0 if there is none. */
uint64_t box_start_time(pid_t pid);
bool box_is_alive(const struct box *b);

#endif
