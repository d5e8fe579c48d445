/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_HTTP_REQUEST_BODY_H
#define LODGE_HTTP_REQUEST_BODY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct http_request;

/* Reads the whole body, at most max bytes (otherwise ERR_LIMIT). The text ends with a NUL that is
 * not counted, and is valid until the handler returns. */
int http_body(struct http_request *rq, size_t max, const char **ret, size_t *ret_len,
	      struct err *err);
/* Reads up to size bytes of the body; 0 at its end, -1 if the client disconnected or is too slow.
 * If the body was read partially, the response is sent after the rest was received and discarded,
 * at most 1 GiB. A body that was never read is not requested. */
ssize_t http_body_read(struct http_request *rq, void *buf, size_t size, struct err *err);
/* The client disconnected or closed its sending half, or the server is shutting down. */
bool http_is_gone(struct http_request *rq);
bool http_is_ending(const struct http_request *rq); /* the server is shutting down */

/* ---- for the server -------------------------------------------------------------------------- */

/* Locked: waits for the other thread to make progress; -1: the client disconnected or is too slow.
 * reading: a client that closed its sending half sends no more. */
void http_progressed(struct http_request *rq); /* locked */
int http_waited(struct http_request *rq, uint64_t bytes, bool reading);

#endif
