/* SPDX-License-Identifier: Apache-2.0 */
/* The sandboxes of a keeper: a table in memory, and one small record on disk beside each sandbox's
 * socket, from which a later keeper adopts it. The keeper holds no descriptor per sandbox, because
 * thousands of them would slow down the next clone. */
#ifndef LODGE_KEEPER_SANDBOX_TABLE_H
#define LODGE_KEEPER_SANDBOX_TABLE_H

#include "runtime/storage/storage.h"

/* What happens to the files on disk when the sandbox is removed. The record has these numbers. */
enum sandbox_files {
	SANDBOX_FILES_GO, /* s-ID is removed: created without `keep` */
	SANDBOX_FILES_STAY, /* k-ID stays */
	SANDBOX_FILES_DROP, /* k-ID is removed: destroyed, or its create did not finish */
	SANDBOX_FILES_BACK, /* k-ID becomes the layer `layer` again: a create with `take` failed */
	SANDBOX_FILES_END,
};

struct sandbox_record {
	struct sandbox_record *next;
	char id[KEEPER_ID_SIZE];
	char group[KEEPER_ID_SIZE]; /* name of its cgroups; those of a slot keep their name */
	char template[KEEPER_ID_SIZE];
	pid_t pid;
	uint64_t start; /* start time in clock ticks since boot: detects a reused pid */
	uid_t base; /* first host id of its range */
	uint32_t store, class;
	enum sandbox_files files;
	char layer[KEEPER_ID_SIZE]; /* SANDBOX_FILES_BACK */
	bool paused; /* frozen by a request, not by a job */
	bool volume_failed; /* ended because the volume with its files turned read-only */
	/* Not in the record on disk: a later keeper is not its parent. */
	int64_t made_ms; /* clock_mono_ms(); 0: by an earlier keeper */
	bool exited; /* lodge-init was reaped: */
	int status; /* as waitpid(2) returned it */
};

/* Its files in the storage. */
struct storage_entry sandbox_table_entry(const struct sandbox_record *sb);

struct sandbox_table {
	struct sandbox_record *buckets[4096];
	size_t count;
};

struct sandbox_record *sandbox_table_find(struct sandbox_table *t, const char *id);
/* Copies *sb into the table; NULL if out of memory. */
struct sandbox_record *sandbox_table_add(struct sandbox_table *t, const struct sandbox_record *sb);
void sandbox_table_remove(struct sandbox_table *t, const char *id);
typedef void sandbox_table_each_fn(struct sandbox_record *sb, void *arg);
void sandbox_table_each(struct sandbox_table *t, sandbox_table_each_fn *fn, void *arg);

/* The child `pid` that began at `start` was reaped. A sandbox of an earlier keeper may have had the
 * same pid. */
void sandbox_table_note_exit(struct sandbox_table *t, pid_t pid, uint64_t start, int status);

/* `dir` is the sandbox's own directory. Replaces the record atomically. 0 or -errno. */
int sandbox_table_record_write(int dir, const struct sandbox_record *sb);
int sandbox_table_record_read(int dir, struct sandbox_record *ret);
/* The same in the directory sb->id of `sandboxes`. */
int sandbox_table_record_write_at(int sandboxes, const struct sandbox_record *sb);

/* Start time of a process; 0 if it does not exist or is a zombie. */
uint64_t sandbox_table_start_time(pid_t pid);
/* The same, also of a zombie. */
uint64_t sandbox_table_zombie_start_time(pid_t pid);
bool sandbox_table_is_alive(const struct sandbox_record *sb);

#endif
