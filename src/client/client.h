/* SPDX-License-Identifier: Apache-2.0 */
/* One lodged, asked over HTTP: by its unix socket, or by http:// and https://. Every call but
 * client_ws_read() blocks. A client never changes, so that several threads may use it; a stream is
 * used by one thread at a time, and independent of others and of its client. SIGPIPE is ignored by
 * whoever uses https://. */
#ifndef LODGE_CLIENT_CLIENT_H
#define LODGE_CLIENT_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct client;

/* url: "unix:PATH", "http://HOST[:PORT]" or "https://HOST[:PORT]"; key NULL: none is sent. */
int client_new(const char *url, const char *key, struct client **ret, struct err *err);
void client_free(struct client *c); /* NULL is allowed */
const char *client_url(const struct client *c);
/* Of each wait for the service, from its first byte to its last; 0: as long as it takes, as it is
 * at first. Before anything is asked. Then it is UNAVAILABLE with ETIMEDOUT. */
void client_limit(struct client *c, int ms);

/* A path of several parts, each %s of fmt percent-encoded as one segment: client_path(buf, size,
 * err, "/v1/sessions/%s/snapshots/%s", id, name). In `%S` slashes stay. One with ".." between its
 * slashes is refused, but behind a `?` of fmt. */
int client_path(char *buf, size_t size, struct err *err, const char *fmt, ...);

/* ---- one question, one answer ------------------------------------------------------------------
 *
 * body NULL: none; borrowed. ret NULL: the answer is not looked at; else a JSON value, the
 * caller's, or NULL for an answer without a body. An answer of 400 or more is -1: err has the
 * service's own sentence and the class that fits the status (404 and 410 NOT_FOUND, with sys ESTALE
 * for 410; 409 CONFLICT; 401 and 403 DENIED; 429 and 507 LIMIT; 503 UNAVAILABLE). A daemon that is
 * not there is UNAVAILABLE with ECONNREFUSED, and a sentence that says what to do; a connection
 * that breaks has any other errno, and an answer of 503 has none. 401 has sys EKEYREJECTED, 416 is
 * LIMIT with ERANGE, too many requests in a second LIMIT with EUSERS. POST requests that create
 * carry an idempotency key where the caller put one; nothing is asked twice by itself. */
int client_call(struct client *c, const char *method, const char *path, const json_t *body,
		json_t **ret, struct err *err);

/* The same, but any answer is 0: *ret is what it says, NULL for nothing. client_failed() makes an
 * error of it afterwards, and returns -1. */
int client_ask(struct client *c, const char *method, const char *path, const json_t *body,
	       int *ret_status, json_t **ret, struct err *err);
int client_failed(const struct client *c, int status, const json_t *answer, struct err *err);

/* All pages of a list: `path` may have a query; items of `member` are appended to one array. */
int client_list(struct client *c, const char *path, const char *member, json_t **ret,
		struct err *err);

/* ---- streams --------------------------------------------------------------------------------- */

struct client_request {
	const char *method, *path;
	const char *accept; /* NULL: any */
	const char *type; /* of the body; NULL: application/json with `body`, else octets */
	const char *const *headers; /* NULL-terminated "Name: value"; NULL: none */
	const json_t *body; /* or: */
	const void *bytes; /* these octets; NULL: none; or: */
	size_t nbytes;
	int body_fd; /* is sent to its end when has_body_fd, with Content-Length where it is a file
		      */
	bool has_body_fd;
	/* Called with the bytes sent so far; NULL: nobody wants to know. */
	void (*sent)(void *arg, uint64_t bytes);
	/* Called when body_fd has come to its end; NULL: it is always whole. Negative: it is not,
	 * and the connection is broken off before the service takes it for whole (of a file it
	 * knew the length). */
	int (*whole)(void *arg, struct err *err);
	void *arg;
};

struct client_stream;

/* The head of the answer has come; 400 or more is an error as above. */
int client_open(struct client *c, const struct client_request *rq, struct client_stream **ret,
		struct err *err);
void client_close(struct client_stream *s); /* NULL is allowed */
int client_status(const struct client_stream *s);
/* NULL: not there. The name in any case. */
const char *client_header(const struct client_stream *s, const char *name);
/* 0: the end, and all of it came; an answer that breaks off is an error (ERR_UNAVAILABLE). */
ssize_t client_read(struct client_stream *s, void *buf, size_t size, struct err *err);
/* One line that is not empty, without its end, until the next call; 0: the end; 1: *ret is one. */
int client_read_line(struct client_stream *s, const char **ret, size_t *ret_len, struct err *err);
/* One line of NDJSON, parsed, the caller's; 0: the end; 1: *ret is one. */
int client_read_json(struct client_stream *s, json_t **ret, struct err *err);
/* The next server-sent event; comments and heart-beats are passed over. 0: the end; 1: one. `id`
 * and `event` are empty where there is none, and valid until the next call. */
struct client_event {
	char id[64], event[64];
	json_t *data; /* the caller's */
};
int client_read_event(struct client_stream *s, struct client_event *ret, struct err *err);

/* ---- a terminal (WebSocket) ------------------------------------------------------------------ */

struct client_ws;

int client_ws_open(struct client *c, const char *path, struct client_ws **ret, struct err *err);
/* Of the answer that opened it; NULL: not there. */
const char *client_ws_header(const struct client_ws *w, const char *name);
void client_ws_close(struct client_ws *w); /* NULL is allowed */
int client_ws_fd(const struct client_ws *w);
bool client_ws_pending(const struct client_ws *w);
int client_ws_send(struct client_ws *w, bool text, const void *data, size_t len, struct err *err);
enum client_ws_kind { CLIENT_WS_BYTES, CLIENT_WS_TEXT, CLIENT_WS_END, CLIENT_WS_NOTHING };
struct client_ws_message {
	enum client_ws_kind kind;
	const char *data; /* until the next call */
	size_t len;
	int code; /* of the end; `data` is the reason then */
};
/* Never waits: CLIENT_WS_NOTHING means poll() client_ws_fd() first. Pings are answered meanwhile.
 * A connection that ends without a word is an error (ERR_UNAVAILABLE). */
int client_ws_read(struct client_ws *w, struct client_ws_message *ret, struct err *err);

#endif
