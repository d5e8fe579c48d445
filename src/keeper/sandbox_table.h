/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper remembers of each sandbox: a table in memory, and one small record beside the
 * sandbox's socket from which a later keeper knows it again. No descriptor is held per sandbox, so
 * that thousands of them do not make the next clone slow. */
#ifndef LODGE_KEEPER_SANDBOX_TABLE_H
#define LODGE_KEEPER_SANDBOX_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/keeper_proto.h"

/* What becomes of the files on disk when the sandbox is removed. */
enum box_files {
	BOX_FILES_GO, /* s-ID, as with every sandbox that is not kept */
	BOX_FILES_STAY, /* k-ID */
	BOX_FILES_DROP, /* k-ID goes: destroyed, or its create did not come to an end */
	BOX_FILES_BACK, /* k-ID was the layer `layer` and is again: as DROP, with `take` */
	BOX_FILES_END,
};

struct box {
	struct box *next;
	char id[KEEPER_ID_SIZE];
	char group[KEEPER_ID_SIZE]; /* name of its cgroups: the pool slot's, if it was one */
	char template[KEEPER_ID_SIZE]; /* its files lie below this sandbox's */
	pid_t pid;
	uint64_t start; /* of the process, in clock ticks since boot: tells a reused pid */
	uid_t base; /* first host id of its range */
	uint32_t store, class;
	enum box_files files;
	char layer[KEEPER_ID_SIZE]; /* BOX_FILES_BACK */
	bool paused; /* frozen because somebody wanted it so */
};

/* Name of its files in the store. */
struct box_entry {
	char name[KEEPER_ID_SIZE + 4];
};
struct box_entry box_entry(const struct box *b);

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

/* In the directory `dir`, the sandbox's own; the old record or the new one is there whenever we
 * die. 0 or -errno. */
int box_record_write(int dir, const struct box *b);
int box_record_read(int dir, struct box *ret);
/* The same in the directory b->id of `boxes`. */
int box_record_write_at(int boxes, const struct box *b);

/* Start time of a process; 0 if there is none. */
uint64_t box_start_time(pid_t pid);
bool box_is_alive(const struct box *b);

#endif
