/* SPDX-License-Identifier: Apache-2.0 */
/* tar(1) as a child, for archives from and to sandboxes, and of root file systems. What comes out
 * of one has unknown intentions. It is unpacked in a new directory, where no link of an earlier
 * archive waits, without owners, devices and set-id bits, and its parts are moved from there by
 * name, following no link; nothing is moved if tar found anything wrong. */
#ifndef LODGE_CLI_COPY_TAR_CHILD_H
#define LODGE_CLI_COPY_TAR_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct tar_child {
	pid_t pid; /* 0: none */
	int fd; /* our end of its pipe; -1: none */
	int target, stage; /* of one that unpacks */
	int fine; /* up to this exit status all is well */
	char name[32]; /* of the stage in the target; empty: none */
};

/* Packs what is in dir, but for what tar_extract_filter.h names; the archive is read from t->fd. */
int tar_pack(struct tar_child *t, const char *dir, struct err *err);
/* Packs a root file system, as the caller may read it, with its owners. What is in its dev, proc
 * and sys is left out, and so are other file systems mounted in it. Files may change meanwhile. */
int tar_pack_root(struct tar_child *t, const char *dir, struct err *err);
/* Unpacks into the directory `target` (borrowed) what is written to t->fd. */
int tar_unpack(struct tar_child *t, int target, struct err *err);
/* Closes the pipe and waits; of one that unpacks also moves what there is into place. */
int tar_finish(struct tar_child *t, struct err *err);
/* Ends it wherever it is; nothing of it stays. Also after tar_finish(), and at a signal. */
void tar_abort(void *tar_child);

#endif
