/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-zstd between two descriptors: untrusted archives are unpacked in a confined process. */
#ifndef LODGE_ENGINE_ZSTD_PIPE_H
#define LODGE_ENGINE_ZSTD_PIPE_H

#include <stdbool.h>

#include "base/err.h"

struct engine;

/* Writes what is to be packed to fd, or (`back`) reads what was unpacked. Borrows fd. */
typedef int zstd_pipe_fn(void *arg, int fd, struct err *err);

struct zstd_pipe_opts {
	bool back; /* unpack */
	/* Unpacks at most so many times the packed bytes, beyond the first 256 MiB: more is
	 * ERR_LIMIT, EMSGSIZE. 0: any number. */
	unsigned ratio;
};

/* fn with the plain end of a pipe; the packed bytes go to, or come from, `fd`, which is borrowed
 * and must not be non-blocking. When fn fails, nothing more of them is written. The process is gone
 * afterwards in any case.
 *
 * ERR_INVALID: fn says so, or the packed bytes are not what they should be. */
int engine_zstd_pipe(struct engine *e, const struct zstd_pipe_opts *o, int fd, zstd_pipe_fn *fn,
		     void *arg, struct err *err);

#endif
