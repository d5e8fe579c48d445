/* SPDX-License-Identifier: Apache-2.0 */
/* A request as its handler sees it. A handler runs on its own thread and may block. It responds
 * exactly once, with http_reply*() or a stream. Strings are valid until it returns. */
#ifndef LODGE_HTTP_HTTP_REQUEST_H
#define LODGE_HTTP_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/json.h"

struct http_request;

/* ---- request --------------------------------------------------------------------------------- */

const char *http_method(const struct http_request *rq);
/* The path as received: percent-encoded, without the query. */
const char *http_path(const struct http_request *rq);
/* The decoded value of a query parameter, or NULL. Requests with a repeated parameter are rejected
 * before any handler runs. */
const char *http_query(const struct http_request *rq, const char *name);
/* Calls fn for each parameter in order, until it returns non-zero. */
typedef int http_pair_fn(void *arg, const char *name, const char *value);
int http_query_each(const struct http_request *rq, http_pair_fn *fn, void *arg);
/* Case-insensitive; NULL if the header is missing. */
const char *http_header(const struct http_request *rq, const char *name);
const char *
http_id(const struct http_request *rq); /* X-Request-Id of the request, or a generated one */
const char *http_peer(const struct http_request *rq); /* the client's address, or "unix" */

bool http_is_tls(const struct http_request *rq);

/* Hands state from admit() to the handler, which takes it over. If the handler never runs, release
 * is called instead. */
void http_put_context(struct http_request *rq, void *context, void (*release)(void *context));
void *http_take_context(struct http_request *rq); /* NULL: none */

/* Content-Length; -1: not given. */
int64_t http_body_length(const struct http_request *rq);
/* Reads the whole body, at most max bytes (otherwise ERR_LIMIT). The text ends with a NUL that is
 * not counted, and is valid until the handler returns. */
int http_body(struct http_request *rq, size_t max, const char **ret, size_t *ret_len,
	      struct err *err);
/* Reads up to size bytes of the body; 0 at its end, -1 if the client disconnected or is too slow.
 * If the body was read partially, the response is sent after the rest was received and discarded,
 * at most 1 GiB. A body that was never read is not requested. */
ssize_t http_body_read(struct http_request *rq, void *buf, size_t size, struct err *err);

/* ---- response -------------------------------------------------------------------------------- */

/* Call it before the response. A second value for a name replaces the first. */
void http_set_header(struct http_request *rq, const char *name, const char *value);
/* Writes the body of an error. The caller fills in `details` before http_error_end(). */
void http_error_begin(struct json_out *j, const char *code, const char *message, bool retryable);
void http_error_end(struct json_out *j);
/* Copies data. NULL with len 0: no body. HEAD sends the same headers. */
void http_reply(struct http_request *rq, unsigned status, const char *type, const void *data,
		size_t len);
/* Sends len bytes of a regular file and takes over fd. If the file turns out to be shorter, the
 * connection is closed early. */
void http_reply_fd(struct http_request *rq, unsigned status, const char *type, int fd,
		   uint64_t offset, uint64_t len);
/* A body of unknown length. Writing blocks while the client reads slowly, and returns -1 if it
 * disconnected or made no progress for too long. */
int http_stream_begin(struct http_request *rq, unsigned status, const char *type);
int http_stream_write(struct http_request *rq, const void *data, size_t len);
/* Ends a stream so that the client sees a truncated body, never one that looks complete. Nothing
 * can be written afterwards. No effect before http_stream_begin(). */
void http_stream_abort(struct http_request *rq);
/* The client disconnected or closed its sending half, or the server is shutting down. */
bool http_is_gone(struct http_request *rq);
bool http_is_ending(const struct http_request *rq); /* the server is shutting down */
/* Turns the connection into another protocol, such as WebSocket. *ret_fd is a blocking socket owned
 * by the caller; it is shut down with the server. The 101 response was sent. Send everything before
 * the handler returns. `extra` has bytes that arrived early, valid until the handler returns. */
int http_upgrade(struct http_request *rq, const char *protocol, int *ret_fd, const void **ret_extra,
		 size_t *ret_extra_len, struct err *err);

#endif
