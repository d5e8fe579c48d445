/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a lodge-keeper: by posix_spawn, because the caller may be a threaded program. */
#ifndef LODGE_SANDBOX_KEEPER_SPAWN_H
#define LODGE_SANDBOX_KEEPER_SPAWN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* `program` NULL: the one keeper_spawn_find() finds. `closed` (or NULL): for an engine with fewer
 * rights than it, the id of the directory that its home must be; see lodge-keeper(8). The process
 * is reaped through *ret_pidfd. */
int keeper_spawn(const char *program, const char *home, bool oneshot, const char *closed,
		 int *ret_fd, int *ret_pidfd, struct err *err);
/* A program of ours (lodge-keeper, lodge-init): beside /proc/self/exe, beside liblodge, or in
 * LIBEXECDIR. */
int keeper_spawn_find(const char *name, char *ret, size_t size, struct err *err);

#endif
