/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP client of lodged: over its unix socket, http:// or https://. Every call but
 * client_ws_read() blocks. A client is immutable, so several threads may share it; one thread at a
 * time uses a stream, which is independent of its client. Programs that use https:// must ignore
 * SIGPIPE. */
#ifndef LODGE_CLIENT_CLIENT_H
#define LODGE_CLIENT_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct client;

/* url: "unix:PATH", "http://HOST[:PORT]" or "https://HOST[:PORT]"; key: NULL for none. */
int client_new(const char *url, const char *key, struct client **ret, struct err *err);
void client_free(struct client *c); /* accepts NULL */
const char *client_url(const struct client *c);
/* Sets the timeout of each wait for the service; 0, the default, waits forever. Call it before the
 * first request. A timeout is UNAVAILABLE with ETIMEDOUT. */
void client_limit(struct client *c, int ms);

/* Builds a path: each %s of fmt is percent-encoded as one segment, as in client_path(buf, size,
 * err, "/v1/sessions/%s/snapshots/%s", id, name). %S keeps slashes. A ".." segment before the `?`
 * of fmt is an error. */
int client_path(char *buf, size_t size, struct err *err, const char *fmt, ...);

/* ---- requests -------------------------------------------------------------------------------
 *
 * `body` is borrowed; NULL sends none. With ret NULL the response body is ignored; else *ret is a
 * JSON value that the caller owns, or NULL for a response without a body. A response of 400 or more
 * is -1: err has the message of the service and the code of the status (404 and 410 NOT_FOUND, with
 * sys ESTALE for 410; 409 CONFLICT; 401 and 403 DENIED; 429 and 507 LIMIT; 503 UNAVAILABLE). 401
 * has sys EKEYREJECTED, 416 is LIMIT with ERANGE, too many requests per second are LIMIT with
 * EUSERS. If no daemon is listening, the error is UNAVAILABLE with ECONNREFUSED and says what to
 * do. A lost connection has any other errno, a response of 503 has none. The client never retries
 * by itself; callers that retry a creation send an idempotency key. */
int client_call(struct client *c, const char *method, const char *path, const json_t *body,
		json_t **ret, struct err *err);

/* The same, but any response is success: *ret is its body, NULL for none. client_failed() turns a
 * failed one into an error and returns -1. */
int client_ask(struct client *c, const char *method, const char *path, const json_t *body,
	       int *ret_status, json_t **ret, struct err *err);
int client_failed(const struct client *c, int status, const json_t *answer, struct err *err);
/* The code that an error has in a response of lodged, as "NOT_FOUND"; also of errors that did not
 * come from it. */
const char *client_code(const struct err *err);

/* Reads all pages of a list and appends the items of `member` to one array. `path` may have a
 * query. */
int client_list(struct client *c, const char *path, const char *member, json_t **ret,
		struct err *err);

/* ---- streams --------------------------------------------------------------------------------- */

struct client_request {
	const char *method, *path;
	const char *accept; /* NULL: any */
	const char *type; /* of the body; NULL: application/json with `body`, else
			     application/octet-stream */
	const char *const *headers; /* names and values in turn, then NULL; NULL: none */
	const json_t *body; /* or: */
	const void *bytes; /* these bytes; NULL: none; or: */
	size_t nbytes;
	int body_fd; /* with has_body_fd, sent to its end; a regular file has a Content-Length */
	bool has_body_fd;
	/* Called with the number of bytes sent so far; may be NULL. */
	void (*sent)(void *arg, uint64_t bytes);
	/* Called at the end of body_fd; may be NULL. A negative result means that the body is
	 * incomplete: the connection is closed before the service accepts it as complete. */
	int (*whole)(void *arg, struct err *err);
	void *arg;
};

struct client_stream;

/* Returns once the head of the response has arrived; 400 or more is an error as above. */
int client_open(struct client *c, const struct client_request *rq, struct client_stream **ret,
		struct err *err);
void client_close(struct client_stream *s); /* accepts NULL */
int client_status(const struct client_stream *s);
/* NULL if there is none. The name is not case-sensitive. */
const char *client_header(const struct client_stream *s, const char *name);
/* 0: the complete end; a truncated response is an error (ERR_UNAVAILABLE). */
ssize_t client_read(struct client_stream *s, void *buf, size_t size, struct err *err);
/* Reads the next line that is not empty, valid until the next call. 1: a line; 0: the end. */
int client_read_line(struct client_stream *s, const char **ret, size_t *ret_len, struct err *err);
/* Reads one line of NDJSON; the caller owns the value. 1: a value; 0: the end. */
int client_read_json(struct client_stream *s, json_t **ret, struct err *err);
/* Reads the next server-sent event, skipping comments and heartbeats. 1: an event; 0: the end. `id`
 * and `event` may be empty. */
struct client_event {
	char id[64], event[64];
	json_t *data; /* owned by the caller */
};
int client_read_event(struct client_stream *s, struct client_event *ret, struct err *err);

/* ---- a terminal (WebSocket) ------------------------------------------------------------------ */

struct client_ws;

int client_ws_open(struct client *c, const char *path, struct client_ws **ret, struct err *err);
/* A header of the response that opened it; NULL if there is none. */
const char *client_ws_header(const struct client_ws *w, const char *name);
void client_ws_close(struct client_ws *w); /* accepts NULL */
int client_ws_fd(const struct client_ws *w);
bool client_ws_pending(const struct client_ws *w);
int client_ws_send(struct client_ws *w, bool text, const void *data, size_t len, struct err *err);
enum client_ws_kind { CLIENT_WS_BYTES, CLIENT_WS_TEXT, CLIENT_WS_END, CLIENT_WS_NOTHING };
struct client_ws_message {
	enum client_ws_kind kind;
	const char *data; /* valid until the next call */
	size_t len;
	int code; /* close code; `data` is the reason then */
};
/* Never waits: after CLIENT_WS_NOTHING, poll() client_ws_fd(). Answers pings. A connection that
 * ends without a close frame is an error (ERR_UNAVAILABLE). */
int client_ws_read(struct client_ws *w, struct client_ws_message *ret, struct err *err);

#endif
