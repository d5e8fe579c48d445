/* SPDX-License-Identifier: Apache-2.0 */
/* Starts lodge-keeper with posix_spawn(), because the caller may be multithreaded. */
#ifndef LODGE_SANDBOX_KEEPER_SPAWN_H
#define LODGE_SANDBOX_KEEPER_SPAWN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* `program` NULL: use keeper_spawn_find(). `closed` (or NULL): for an engine with fewer rights than
 * the keeper, the id of the directory that its home must be; see lodge-keeper(8). Reap the process
 * through *ret_pidfd. */
int keeper_spawn(const char *program, const char *home, bool oneshot, const char *closed,
		 int *ret_fd, int *ret_pidfd, struct err *err);
/* Finds lodge-keeper, lodge-init or lodge-zstd next to /proc/self/exe, next to liblodge.so, or in
 * LIBEXECDIR. */
int keeper_spawn_find(const char *name, char *ret, size_t size, struct err *err);

#endif
