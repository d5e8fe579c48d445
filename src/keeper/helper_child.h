/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes of the keeper for work that takes long. They die with the keeper and hold neither
 * its locks nor its socket. */
#ifndef LODGE_KEEPER_HELPER_CHILD_H
#define LODGE_KEEPER_HELPER_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CHILD_FDS_MAX = 64, CHILD_HOLDERS_MAX = 64 };

enum child_rank {
	CHILD_AWAITED, /* a sandbox is frozen until it ends */
	CHILD_LOW,
	CHILD_IDLE, /* gets the disk only while it is otherwise idle */
};

/* Like fork(2). The child has only these descriptors, and default signal handlers. keeper_reap()
 * reaps it. */
pid_t helper_child_fork(const int *fds, size_t n, enum child_rank rank);

/* The last process of a sandbox unmounts its root, and the kernel first writes the whole file
 * system below to disk, which takes seconds on a busy host. This starts a child that holds the root
 * until `pid` is dead and for a second longer, so that the unmount happens in the child and after
 * files of the sandbox were removed. Best effort: does nothing on failure, or while
 * CHILD_HOLDERS_MAX such children run. */
void helper_child_hold_root(pid_t pid);
bool helper_child_reaped(pid_t pid); /* whether it was one of these */

#endif
