/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-zstd beside us, between two descriptors: whatever an archive holds is unpacked where it can
 * do nothing. */
#ifndef LODGE_ENGINE_ZSTD_PIPE_H
#define LODGE_ENGINE_ZSTD_PIPE_H

#include <stdbool.h>

#include "base/err.h"

/* Writes what is to be packed to fd, or reads (then `back`) what was unpacked. Borrows fd. */
typedef int zstd_pipe_fn(void *arg, int fd, struct err *err);

/* fn with the plain end of a pipe; the packed bytes go to, or come from, `fd`, which is borrowed
 * and must not be non-blocking. When fn fails, nothing more of them is written. The process is gone
 * afterwards in any case. program NULL: the one that belongs to us.
 *
 * ERR_INVALID: fn says so, or the packed bytes are not what they should be. */
int zstd_pipe_run(const char *program, bool back, int fd, zstd_pipe_fn *fn, void *arg,
		  struct err *err);

struct engine;
/* zstd_pipe_run() with the engine's program. */
int engine_zstd_pipe(struct engine *e, bool back, int fd, zstd_pipe_fn *fn, void *arg,
		     struct err *err);

#endif
