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
/* Reads up to size bytes of the body; 0 at its end, -1 if the client disconnected, is too slow or
 * sent a malformed body (ERR_INVALID). What is not read is discarded after the response; of a large
 * body that was never read, the connection is closed instead. */
ssize_t http_body_read(struct http_request *rq, void *buf, size_t size, struct err *err);
/* The client disconnected or closed its sending half, or the server is shutting down. May be called
 * by other threads than the handler's. */
bool http_is_gone(struct http_request *rq);
bool http_is_ending(const struct http_request *rq); /* the server is shutting down */

/* ---- for the server -------------------------------------------------------------------------- */

/* The same without waiting: -1 with errno EAGAIN, EBADMSG for a malformed body, or another. */
ssize_t request_body_take(struct http_request *rq, void *buf, size_t size);

#endif
