/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files of sandboxes and templates are kept. An entry is a directory holding "u" (what
 * the overlay writes to) and "w" (its work directory), on disk with ids as the sandbox sees them.
 *
 *   btrfs   the home is one, or has a volume: an entry is a subvolume with a limit
 *   dir     any file system: an entry is a plain directory, no limit
 *   memory  a tmpfs of its own, gone with the sandbox
 *
 *   s-ID    files of a sandbox that go with it, or of one of the pool that nobody has yet
 *   k-ID    files of a sandbox that outlive it
 *   l-NAME  a layer: such files, sealed
 *   n-NAME  a layer that is being made
 *   t-NAME  a template
 *   x-R     being removed
 *
 * k, l, n and those of the pool also hold "template", a link whose target is the name of what they
 * lie on: a link is there whole or not at all. "u" is made last: an entry that has one is complete.
 */
#ifndef LODGE_RUNTIME_STORAGE_STORAGE_H
#define LODGE_RUNTIME_STORAGE_STORAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/file_io.h"
#include "wire/keeper_proto.h"

struct storage;

struct storage_ops { /* on entries of one directory; 0 or -errno */
	const char *name;
	bool has_limit;
	int (*make)(int dir, const char *entry);
	int (*drop)(int dir, const char *entry);
	int (*limit)(int dir, const char *entry, uint64_t bytes);
	int (*usage)(int dir, const char *entry, uint64_t *ret);
	int (*snapshot)(int dir, const char *from, const char *to); /* NULL: it cannot */
};

struct storage {
	const struct storage_ops *ops;
	int dir; /* -1: not opened yet */
	int home, scratch;
	bool rootless;
	bool defer_removal; /* storage_drop() renames trees to x-R, for storage_sweep() */
	bool has_dropped; /* there are trees for storage_sweep() */
};

/* Whether there is one to open: otherwise nothing was ever kept, and looking makes none. */
bool storage_is_made(const struct storage *s);

/* Opens (and on a first use makes) the disk store. Cheap when already open. */
int storage_open(struct storage *s, struct err *err);

/* Whether entries are limited, or will be once it is open. */
bool storage_has_limit(const struct storage *s);

/* Whether an entry can be copied at once, whatever its size. Of an open one. */
bool storage_has_snapshots(const struct storage *s);

/* A detached mount of a new entry, ids mapped by `userns` (-1: none). `template`: what it lies on,
 * NULL for s-ID. */
int storage_make(struct storage *s, const char *entry, const char *template, const struct limits *l,
		 int userns, int *ret, struct err *err);
/* The same of an entry that was a layer. */
int storage_reuse(struct storage *s, const char *entry, const struct limits *l, int userns,
		  int *ret, struct err *err);
/* `owner`: host id of the sandbox's root, whose the files are where a tmpfs cannot be mapped. */
int storage_make_memory(const struct limits *l, int userns, uid_t owner, int *ret, struct err *err);

/* False also where the store was not opened. */
bool storage_has(const struct storage *s, const char *entry);
/* An fd of its directory "u", or -1. */
int storage_files(struct storage *s, const char *entry, struct err *err);
/* What it lies on. 0 or -errno. */
int storage_template(const struct storage *s, const char *entry, char ret[KEEPER_ID_SIZE]);
/* Calls fn for what follows `prefix` in the name of each entry that begins so, until it returns
 * non-zero. */
int storage_each(struct storage *s, const char *prefix, file_each_fn *fn, void *arg,
		 struct err *err);

/* An empty entry for somebody to fill: without limit and "u". An fd of it. */
int storage_begin(struct storage *s, const char *entry, const char *template, struct err *err);
int storage_snapshot(struct storage *s, const char *from, const char *to, struct err *err);
/* From what a sandbox wrote to what nobody writes to any more: no limit, no work directory. */
int storage_seal(struct storage *s, const char *entry, struct err *err);

int storage_drop(struct storage *s, const char *entry, struct err *err);
/* Removes every x-R; takes as long as it takes. */
void storage_sweep(const struct storage *s);
/* `to` must not be there. The second one is durable when it returns. */
int storage_move(struct storage *s, const char *from, const char *to, struct err *err);
int storage_rename(struct storage *s, const char *from, const char *to, struct err *err);
int storage_limit(struct storage *s, const char *entry, uint64_t bytes, struct err *err);
/* UINT64_MAX where it cannot be told. Lags behind what was written by a few seconds. */
uint64_t storage_usage(struct storage *s, const char *entry);
/* Whether a write would fail now: tried, because that does not lag. */
bool storage_is_full(struct storage *s, const char *entry);

#endif
