/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_HTTP_REQUEST_HEAD_H
#define LODGE_HTTP_REQUEST_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct http1_error;
struct http_request;
struct pair;

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
/* X-Request-Id of the request, or a generated one. */
const char *http_id(const struct http_request *rq);
const char *http_peer(const struct http_request *rq); /* the client's address, or "unix" */
/* The request has a valid key: its connection does not count for its address, and is closed last to
 * make place for others, until a request without one. */
void http_trust(struct http_request *rq);
/* For admit(): its handler returns at once, so it neither counts for max_requests nor is refused
 * there. */
void http_set_urgent(struct http_request *rq);

/* Hands state from admit() to the handler, which takes it over. If the handler never runs, release
 * is called instead. */
void http_put_context(struct http_request *rq, void *context, void (*release)(void *context));
void *http_take_context(struct http_request *rq); /* NULL: none */

/* Content-Length; -1: not given. */
int64_t http_body_length(const struct http_request *rq);

/* ---- for the server -------------------------------------------------------------------------- */

/* NULL: out of memory. */
struct http_request *http_request_new(struct conn *c);
void http_request_free(struct http_request *rq);
/* Takes the head that the connection has received. Returns 0, or the status of a rejection. */
unsigned http_request_take_head(struct http_request *rq, struct http1_error *err);
/* For a request whose head cannot be used. */
void http_request_choose_id(struct http_request *rq);
/* Splits and decodes in place. NULL, or why not. */
const char *http_parse_query(char *text, struct pair **ret, size_t *ret_n);

#endif
