/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files of sandboxes and templates are kept. An entry is a directory holding "u" (what
 * the overlay writes to) and "w" (its work directory), on disk with ids as the sandbox sees them.
 *
 *   btrfs   the home is one, or has a volume: an entry is a subvolume with a limit
 *   dir     any file system: an entry is a plain directory, no limit
 *   memory  a tmpfs of its own, gone with the sandbox */
#ifndef LODGE_RUNTIME_SHELF_H
#define LODGE_RUNTIME_SHELF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "wire/limits.h"

struct shelf;

struct shelf_ops { /* on entries of one directory; 0 or -errno */
	const char *name;
	bool has_limit;
	int (*make)(int dir, const char *entry);
	int (*drop)(int dir, const char *entry);
	int (*limit)(int dir, const char *entry, uint64_t bytes);
	int (*usage)(int dir, const char *entry, uint64_t *ret);
};

struct shelf {
	const struct shelf_ops *ops;
	int dir; /* -1: not opened yet */
	int home, scratch;
	bool rootless;
};

/* Opens (and on a first use makes) the disk store. Cheap when already open. */
int shelf_open(struct shelf *s, struct err *err);

/* Whether entries are limited, or will be once it is open. */
bool shelf_has_limit(const struct shelf *s);

/* A detached mount of a new entry, ids mapped by `userns` (-1: none). */
int shelf_make(struct shelf *s, const char *entry, const struct limits *l, int userns, int *ret,
	       struct err *err);
/* `owner`: host id of the sandbox's root, whose the files are where a tmpfs cannot be mapped. */
int shelf_make_memory(const struct limits *l, int userns, uid_t owner, int *ret, struct err *err);

int shelf_drop(struct shelf *s, const char *entry, struct err *err);
int shelf_rename(struct shelf *s, const char *from, const char *to, struct err *err);
int shelf_limit(struct shelf *s, const char *entry, uint64_t bytes, struct err *err);
/* UINT64_MAX where it cannot be told. Lags behind what was written by a few seconds. */
uint64_t shelf_usage(struct shelf *s, const char *entry);
/* Whether a write would fail now: tried, because that does not lag. */
bool shelf_is_full(struct shelf *s, const char *entry);

#endif
