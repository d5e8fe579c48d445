/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the output of a command. */
#ifndef LODGE_API_V1_V1_EXEC_STREAM_H
#define LODGE_API_V1_V1_EXEC_STREAM_H

#include "api/v1/v1_exec.h"

/* Length of the longest prefix that does not end within a character. */
size_t v1_whole(const char *bytes, size_t len);

enum v1_stream { V1_NO_STREAM, V1_SSE, V1_NDJSON };
enum v1_stream v1_stream_is_requested(const struct api_call *c);
/* Parses the start offsets, before anything is started. */
int v1_stream_offset(struct api_call *c, int64_t has[2], struct err *err);
/* Streams the command until it ends or the client disconnects; takes over x. */
int v1_exec_stream(struct api_call *c, const struct exec_request *w, enum v1_stream how,
		   const int64_t has[2], struct exec_handle *x, struct err *err);

#endif
