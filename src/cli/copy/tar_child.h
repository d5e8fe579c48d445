/* SPDX-License-Identifier: Apache-2.0 */
/* Runs tar(1) to pack and unpack archives. An archive from a sandbox is not trusted: it is unpacked
 * into a new directory, where no link of an earlier archive can exist, without owners, devices and
 * set-id bits. Its entries are then moved by name without following links, and only if tar
 * succeeded. */
#ifndef LODGE_CLI_COPY_TAR_CHILD_H
#define LODGE_CLI_COPY_TAR_CHILD_H

#include <sys/types.h>

#include "base/err.h"

struct tar_child {
	pid_t pid; /* 0: none */
	int fd; /* our end of its pipe; -1: none */
	int target, stage; /* when unpacking */
	int ok_status; /* the highest exit status that is a success */
	char name[32]; /* of the stage in the target; "": none */
};

/* Packs the contents of dir; read it from t->fd. Reports and skips pipes, sockets and devices. */
int tar_pack(struct tar_child *t, const char *dir, struct err *err);
/* Packs a root file system with its owners, without the contents of dev, proc and sys and of
 * mounted file systems. Files may change while tar reads them. */
int tar_pack_root(struct tar_child *t, const char *dir, struct err *err);
/* Unpacks what is written to t->fd into the directory `target` (borrowed). */
int tar_unpack(struct tar_child *t, int target, struct err *err);
/* Closes the pipe and waits; after unpacking, moves the entries into place. */
int tar_finish(struct tar_child *t, struct err *err);
/* Kills tar and removes the stage. Allowed after tar_finish(), and when a signal arrives. */
void tar_abort(void *tar_child);

#endif
