/* SPDX-License-Identifier: Apache-2.0 */
/* The files of sandboxes and templates. An entry is a directory that contains "u" (the upper
 * directory of the overlay) and "w" (its work directory). Ids on disk are those inside the sandbox.
 *
 *   btrfs   the home is on btrfs or has a volume: an entry is a subvolume with a limit
 *   dir     any file system: an entry is a plain directory without a limit
 *   memory  a tmpfs per sandbox, which ends with it
 *
 *   s-ID    files of a sandbox that end with it, or of a slot of the pool
 *   k-ID    files of a sandbox that outlive it
 *   l-NAME  a layer: sealed files of a sandbox
 *   n-NAME  a layer that is being made
 *   t-NAME  a template
 *   x-R     being removed
 *
 * k, l, n and those of the pool also contain "template", a symbolic link whose target is the name
 * of their template, because a link is created atomically; so does t if it stands on another t. "u"
 * is made last: an entry that has it is complete. */
#ifndef LODGE_RUNTIME_STORAGE_STORAGE_H
#define LODGE_RUNTIME_STORAGE_STORAGE_H

#include "base/file_io.h"
#include "wire/keeper_proto.h"

struct btrfs_usage;

struct storage_ops { /* on entries of one directory; 0 or -errno */
	int (*make)(int dir, const char *entry);
	int (*drop)(int dir, const char *entry);
	/* NULL: not supported */
	int (*limit)(int dir, const char *entry, uint64_t bytes);
	int (*usage)(int dir, const char *entry, struct btrfs_usage *ret);
	int (*snapshot)(int dir, const char *from, const char *to);
};

struct storage {
	const struct storage_ops *ops;
	int dir; /* -1: not opened yet */
	int volume; /* the file of the volume; -1: not open, or the files are not in a volume */
	int home, scratch;
	bool rootless;
	bool defer_removal; /* storage_drop() renames trees to x-R, for storage_sweep() */
	bool has_dropped; /* there are trees for storage_sweep() */
	char no_volume[160]; /* why it has no volume */
};

/* The name of an entry: `kind` is its letter in the list above. */
struct storage_entry {
	char name[KEEPER_ID_SIZE + 4];
};
struct storage_entry storage_entry(char kind, const char *id);

/* True if the disk storage exists. If not, nothing was ever stored; this does not make it. */
bool storage_is_made(const struct storage *s);

/* Opens the disk storage, and makes it at the first use. Cheap if it is already open. */
int storage_open(struct storage *s, struct err *err);

/* True if the volume turned read-only because a write below it failed. Nothing but a new mount
 * helps, and that needs the end of every sandbox on it. */
bool storage_is_failed(const struct storage *s);
/* storage_open() mounts the volume again. */
void storage_close(struct storage *s);

/* True if limits of entries are enforced, or will be once it is open. */
bool storage_has_limit(const struct storage *s);

/* Why not, in one line. */
const char *storage_limit_problem(const struct storage *s);

/* True if entries can be copied in O(1). The storage must be open. */
bool storage_has_snapshots(const struct storage *s);

/* A detached mount of a new entry, with ids mapped by `userns` (-1: not mapped). `template`: NULL
 * for s-ID. */
int storage_make(struct storage *s, const char *entry, const char *template, const struct limits *l,
		 int userns, int *ret, struct err *err);
/* The same for an existing entry that was a layer. It has no limit yet: if it is full, the overlay
 * could not make its work directory and would be read-only. Call storage_limit() when it runs. */
int storage_reuse(struct storage *s, const char *entry, int userns, int *ret, struct err *err);
/* `owner`: host id of the sandbox's root, which owns the files if a tmpfs cannot be idmapped. */
int storage_make_memory(const struct limits *l, int userns, uid_t owner, int *ret, struct err *err);

/* False also if the storage is not open. */
bool storage_has(const struct storage *s, const char *entry);
/* An fd of its directory "u", or -1. */
int storage_files(struct storage *s, const char *entry, struct err *err);
/* The name of its template. 0 or -errno. */
int storage_template(const struct storage *s, const char *entry, char ret[KEEPER_ID_SIZE]);
/* Makes an entry that has none stand on a template. */
int storage_set_template(struct storage *s, const char *entry, const char *template,
			 struct err *err);
/* Calls fn for each entry whose name begins with `prefix`, with the rest of the name, until it
 * returns non-zero. */
int storage_each(struct storage *s, const char *prefix, file_each_fn *fn, void *arg,
		 struct err *err);

/* Makes an entry for a job to fill: without a limit and without "u". An fd of it. */
int storage_begin(struct storage *s, const char *entry, const char *template, struct err *err);
int storage_snapshot(struct storage *s, const char *from, const char *to, struct err *err);
/* Turns the entry of an ended sandbox into one that never changes: removes its limit and its work
 * directory. */
int storage_seal(struct storage *s, const char *entry, struct err *err);

int storage_drop(struct storage *s, const char *entry, struct err *err);
/* Removes every x-R. Blocks until it is done. */
void storage_sweep(const struct storage *s);
/* `to` must not exist. storage_rename() also syncs the new name. */
int storage_move(struct storage *s, const char *from, const char *to, struct err *err);
int storage_rename(struct storage *s, const char *from, const char *to, struct err *err);
/* Does nothing if the storage is not open or enforces no limits. */
int storage_limit(struct storage *s, const char *entry, uint64_t bytes, struct err *err);
/* UINT64_MAX: unknown. Deleted files count until the file system commits, up to 30 s. */
uint64_t storage_usage(struct storage *s, const char *entry);
/* True if a write fails now. This tries one if little is left. */
bool storage_is_full(struct storage *s, const char *entry);

#endif
