/* SPDX-License-Identifier: Apache-2.0 */
/* Streams between a client and a function that reads or writes a descriptor: a pipe, with the
 * function on its own thread. Nothing is buffered in memory. */
#ifndef LODGE_API_CORE_PIPE_STREAM_H
#define LODGE_API_CORE_PIPE_STREAM_H

#include "api/core/api_call.h"

/* Borrows fd. After a disconnect the other end is closed. */
typedef int pipe_stream_fn(void *arg, int fd, struct err *err);

/* Sends what fn writes. -1: fn failed before the first byte, and no response was sent. A later
 * failure truncates the response. */
int pipe_stream_out(struct api_call *c, const char *type, pipe_stream_fn *fn, void *arg,
		    struct err *err);
/* fn reads the body. -1: fn failed, or the body is incomplete. Sends no response. */
int pipe_stream_in(struct api_call *c, pipe_stream_fn *fn, void *arg, struct err *err);

#endif
