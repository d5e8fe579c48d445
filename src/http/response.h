/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_HTTP_RESPONSE_H
#define LODGE_HTTP_RESPONSE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/json.h"

struct conn_io;
struct http_request;

/* Call it before the response. A second value for a name replaces the first. */
void http_set_header(struct http_request *rq, const char *name, const char *value);
/* Writes the body of an error. The caller fills in `details` before http_error_end(). */
void http_error_begin(struct json_out *j, const char *code, const char *message, bool retryable);
void http_error_end(struct json_out *j);
/* Does not block: what the client does not take at once is copied, and sent later. NULL with len 0:
 * no body. HEAD sends the same headers. */
void http_reply(struct http_request *rq, unsigned status, const char *type, const void *data,
		size_t len);
/* The same for data that is never freed, and is not copied. */
void http_reply_static(struct http_request *rq, unsigned status, const char *type, const void *data,
		       size_t len);
/* Sends len bytes of a regular file and takes over fd; does not block either. If the file turns out
 * to be shorter, the connection is closed early. */
void http_reply_fd(struct http_request *rq, unsigned status, const char *type, int fd,
		   uint64_t offset, uint64_t len);
/* A body of unknown length. Writing blocks while the client reads slowly, and returns -1 if it
 * disconnected or made no progress for too long. */
int http_stream_begin(struct http_request *rq, unsigned status, const char *type);
int http_stream_write(struct http_request *rq, const void *data, size_t len);
/* Ends a stream so that the client sees a truncated body, never one that looks complete. Nothing
 * can be written afterwards. No effect before http_stream_begin(). */
void http_stream_abort(struct http_request *rq);

/* A stream that goes on after its handler has returned, without a thread. `step` runs on any
 * thread, one at a time: soon after http_stream_wake(), when a full stream has space again, when
 * the client disconnects, and after the time that it returned at the latest. It writes what there
 * is, until http_stream_is_full(); writing does not block then. It returns ms, or -1: the stream
 * has ended. Then `end` is called, which releases arg. No wake may follow. */
struct http_stream_ops {
	int (*step)(void *arg);
	void (*end)(void *arg);
};
/* The last call of a handler that has begun a stream or upgraded the connection. */
void http_stream_detach(struct http_request *rq, const struct http_stream_ops *ops, void *arg);
void http_stream_wake(struct http_request *rq); /* from any thread */
bool http_stream_is_full(const struct http_request *rq);
/* Before http_stream_detach(): input of this descriptor calls a step too. It must stay open until
 * `end`. */
void http_stream_source(struct http_request *rq, int fd);
/* For steps of an upgraded connection: the events (POLLIN, POLLOUT) that call the next one. */
void http_stream_watch(struct http_request *rq, short events);

/* Turns the connection into another protocol, such as WebSocket. The 101 response was sent. The
 * bytes belong to the handler until it returns; the server shuts the socket down when it ends.
 * `extra` has bytes that arrived early. */
int http_upgrade(struct http_request *rq, const char *protocol, struct conn_io **ret,
		 const void **ret_extra, size_t *ret_extra_len, struct err *err);

/* ---- for the server -------------------------------------------------------------------------- */

void response_error(struct http_request *rq, unsigned status, const char *code, const char *message,
		    bool retryable);
/* Queues the end of a stream. */
void response_end_stream(struct http_request *rq);
/* Sends without waiting. 0: everything was sent; 1: the socket is full; -1: disconnected. */
int response_flush(struct http_request *rq);

#endif
