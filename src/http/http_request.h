/* SPDX-License-Identifier: Apache-2.0 */
/* One request, as a handler sees it: what was asked, and the one answer to it. A handler runs on a
 * thread of its own and may block; it answers exactly once, by one http_reply*() or by a stream.
 * Strings are good until it returns. */
#ifndef LODGE_HTTP_HTTP_REQUEST_H
#define LODGE_HTTP_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/json.h"

struct http_request;

/* ---- what was asked ---------------------------------------------------------------------------
 */

const char *http_method(const struct http_request *rq);
/* As it came, still encoded, without the query. */
const char *http_path(const struct http_request *rq);
/* Decoded; NULL if there is none. A name that came twice is refused before any handler runs. */
const char *http_query(const struct http_request *rq, const char *name);
/* Every parameter in the order in which it came, until fn returns other than 0. */
typedef int http_pair_fn(void *arg, const char *name, const char *value);
int http_query_each(const struct http_request *rq, http_pair_fn *fn, void *arg);
/* Names in any case; NULL if there is none. */
const char *http_header(const struct http_request *rq, const char *name);
const char *http_id(const struct http_request *rq); /* X-Request-Id: the caller's, or a new one */
const char *http_peer(const struct http_request *rq); /* the caller's address, or "unix" */

bool http_is_tls(const struct http_request *rq);

/* Hands state from admit() to the handler, which takes it over. If the handler never runs, release
 * is called instead. */
void http_put_context(struct http_request *rq, void *context, void (*release)(void *context));
void *http_take_context(struct http_request *rq); /* NULL: none */

/* The length that was announced; -1: none was. */
int64_t http_body_length(const struct http_request *rq);
/* The whole body, at most max bytes (more is ERR_LIMIT); ends with a NUL that does not count. Good
 * until the handler returns. */
int http_body(struct http_request *rq, size_t max, const char **ret, size_t *ret_len,
	      struct err *err);
/* Or piece by piece: up to size bytes; 0 at the end, -1 when the caller vanished or is too slow.
 * The answer to a body that was read in part goes out when the rest has come and been thrown away:
 * at most 16 MB, else the connection ends without it. One that was not begun is not asked for. */
ssize_t http_body_read(struct http_request *rq, void *buf, size_t size, struct err *err);

/* ---- the answer ---------------------------------------------------------------------------------
 */

/* Before the answer; a name may be added once, the last value counts. */
void http_set_header(struct http_request *rq, const char *name, const char *value);
/* The body of an error: its details, to be filled in between, are an object that is open. */
void http_error_begin(struct json_out *j, const char *code, const char *message, bool retryable);
void http_error_end(struct json_out *j);
/* data is copied; NULL with len 0: no body. HEAD sends the same head. */
void http_reply(struct http_request *rq, unsigned status, const char *type, const void *data,
		size_t len);
/* len bytes of a regular file from offset on; takes over fd. When the file turns out to be shorter
 * the connection ends early, as the announced length tells the reader. */
void http_reply_fd(struct http_request *rq, unsigned status, const char *type, int fd,
		   uint64_t offset, uint64_t len);
/* A body of unknown length. Writing waits for a reader that is slow, and is -1 when he is gone (or
 * did not read for too long): the handler then ends what it does. */
int http_stream_begin(struct http_request *rq, unsigned status, const char *type);
int http_stream_write(struct http_request *rq, const void *data, size_t len);
/* What was to be sent cannot be made: the reader gets what was written and then a body that is
 * broken off, never one that looks complete. Nothing can be written afterwards. Without effect
 * before http_stream_begin(). */
void http_stream_abort(struct http_request *rq);
/* The caller hung up (also if he only closed his half), or the server is about to end. */
bool http_is_gone(struct http_request *rq);
bool http_is_ending(const struct http_request *rq); /* only the latter */
/* The connection becomes a WebSocket or the like: *ret_fd is the socket, the caller's, blocking;
 * when the server ends it is shut down. What is to be sent must be, before the handler returns;
 * the answer has been sent. Bytes that came early are in extra (good until the handler returns). */
int http_upgrade(struct http_request *rq, const char *protocol, int *ret_fd, const void **ret_extra,
		 size_t *ret_extra_len, struct err *err);

#endif
