/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of the keeper's own that do what takes long. They die with it, and hold neither its
 * locks nor its socket. */
#ifndef LODGE_KEEPER_HELPER_CHILD_H
#define LODGE_KEEPER_HELPER_CHILD_H

#include <stddef.h>
#include <sys/types.h>

enum { CHILD_FDS_MAX = 64, CHILD_HOLDERS_MAX = 64 };

enum child_rank {
	CHILD_AWAITED, /* a guest stands still meanwhile */
	CHILD_LOW,
	CHILD_IDLE, /* when nobody else wants the disk */
};

/* As fork(2). The child has only these descriptors and the signals of a fresh process;
 * keeper_reap() reaps it. */
pid_t helper_child_fork(const int *fds, size_t n, enum child_rank rank);

/* A sandbox's last process to go unmounts its root, and the kernel then writes the whole file
 * system below to disk first: seconds, on a busy host. A child that holds the root until `pid` is
 * dead takes that upon itself, a little later: files that are to go are gone by then. Does nothing
 * where it cannot, or where there are many already. */
void helper_child_hold_root(pid_t pid);
void helper_child_reaped(pid_t pid);

#endif
