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
enum sandbox_files {
	SANDBOX_FILES_GO, /* s-ID, as with every sandbox that is not kept */
	SANDBOX_FILES_STAY, /* k-ID */
	SANDBOX_FILES_DROP, /* k-ID goes: destroyed, or its create did not come to an end */
	SANDBOX_FILES_BACK, /* k-ID was the layer `layer` and is again: as DROP, with `take` */
	SANDBOX_FILES_END,
};

struct sandbox_record {
	struct sandbox_record *next;
	char id[KEEPER_ID_SIZE];
	char group[KEEPER_ID_SIZE]; /* name of its cgroups: the pool slot's, if it was one */
	char template[KEEPER_ID_SIZE]; /* its files lie below this sandbox's */
	pid_t pid;
	uint64_t start; /* of the process, in clock ticks since boot: tells a reused pid */
	uid_t base; /* first host id of its range */
	uint32_t store, class;
	enum sandbox_files files;
	char layer[KEEPER_ID_SIZE]; /* SANDBOX_FILES_BACK */
	bool paused; /* frozen because somebody wanted it so */
};

/* Name of its files in the store. */
struct sandbox_table_entry {
	char name[KEEPER_ID_SIZE + 4];
};
struct sandbox_table_entry sandbox_table_entry(const struct sandbox_record *sb);

struct sandbox_table {
	struct sandbox_record *buckets[4096];
	size_t count;
};

struct sandbox_record *sandbox_table_find(struct sandbox_table *t, const char *id);
/* Copies *b into the table; NULL without memory. */
struct sandbox_record *sandbox_table_add(struct sandbox_table *t, const struct sandbox_record *sb);
void sandbox_table_remove(struct sandbox_table *t, const char *id);
typedef void sandbox_table_each_fn(struct sandbox_record *sb, void *arg);
void sandbox_table_each(struct sandbox_table *t, sandbox_table_each_fn *fn, void *arg);

/* In the directory `dir`, the sandbox's own; the old record or the new one is there whenever we
 * die. 0 or -errno. */
int sandbox_table_record_write(int dir, const struct sandbox_record *sb);
int sandbox_table_record_read(int dir, struct sandbox_record *ret);
/* The same in the directory sb->id of `sandboxes`. */
int sandbox_table_record_write_at(int sandboxes, const struct sandbox_record *sb);

/* Start time of a process; 0 if there is none. */
uint64_t sandbox_table_start_time(pid_t pid);
bool sandbox_table_is_alive(const struct sandbox_record *sb);

#endif
