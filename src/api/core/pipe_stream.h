/* SPDX-License-Identifier: Apache-2.0 */
/* A stream between a caller and something that reads or writes a descriptor: a pipe, with that
 * something on a thread of its own. Neither side is held in memory. */
#ifndef LODGE_API_CORE_PIPE_STREAM_H
#define LODGE_API_CORE_PIPE_STREAM_H

#include "api/core/api_call.h"

/* Borrows fd. Nobody reads from it, or writes to it, any more when the caller is gone. */
typedef int pipe_stream_fn(void *arg, int fd, struct err *err);

/* What fn writes is the answer. -1: it failed before the first byte, and nothing was answered. When
 * it fails later the answer ends there, without the end that belongs to its format. */
int pipe_stream_out(struct api_call *c, const char *type, pipe_stream_fn *fn, void *arg,
		    struct err *err);
/* fn reads the body. -1: it failed, or the body did not come to its end. Nothing was answered. */
int pipe_stream_in(struct api_call *c, pipe_stream_fn *fn, void *arg, struct err *err);

#endif
