/* SPDX-License-Identifier: Apache-2.0 */
#include "http/request_head.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/percent.h"
#include "base/mutex.h"
#include "http/conn_limit.h"

enum { PARAMETERS_MAX = 100 };

/* A proxy might use the first of two, and lodge the second. */
#define SINGLE                                                                                     \
	(HTTP1_BIT(HTTP1_CONTENT_TYPE) | HTTP1_BIT(HTTP1_AUTHORIZATION) |                          \
	 HTTP1_BIT(HTTP1_X_API_KEY) | HTTP1_BIT(HTTP1_X_REQUEST_ID) | HTTP1_BIT(HTTP1_RANGE) |     \
	 HTTP1_BIT(HTTP1_IF_MATCH) | HTTP1_BIT(HTTP1_IF_NONE_MATCH) | HTTP1_BIT(HTTP1_ORIGIN) |    \
	 HTTP1_BIT(HTTP1_IF_RANGE) | HTTP1_BIT(HTTP1_UPGRADE) | HTTP1_BIT(HTTP1_LAST_EVENT_ID) |   \
	 HTTP1_BIT(HTTP1_SEC_FETCH_SITE))

static void name_peer(const struct conn *c, char ret[PEER_MAX])
{
	if (c->is_unix)
		snprintf(ret, PEER_MAX, "unix");
	else if (IN6_IS_ADDR_V4MAPPED(&c->client))
		inet_ntop(AF_INET, &c->client.s6_addr[12], ret, PEER_MAX);
	else
		inet_ntop(AF_INET6, &c->client, ret, PEER_MAX);
}

struct http_request *http_request_new(struct conn *c)
{
	struct http_request *rq = calloc(1, sizeof(*rq));

	if (!rq)
		return NULL;
	rq->server = c->server;
	rq->conn = c;
	rq->method = rq->path = "";
	rq->out.file = rq->stream_state.source = -1;
	rq->started_us = clock_mono_us();
	name_peer(c, rq->peer);
	return rq;
}

void http_request_free(struct http_request *rq)
{
	if (rq->context)
		rq->release_context(rq->context);
	for (size_t i = 0; i < rq->nset; i++) {
		free(rq->set[i].name);
		free(rq->set[i].value);
	}
	free(rq->set);
	free(rq->out.bytes);
	close_fd(&rq->out.file);
	free(rq->whole);
	free(rq->headers);
	free(rq->query);
	free(rq);
}

/* ---- parsing --------------------------------------------------------------------------------- */

/* Something follows each part of a head, so that its end can be marked in place. */
static char *cut(struct input *in, struct http1_span s)
{
	in->bytes[s.at + s.len] = '\0';
	return in->bytes + s.at;
}

static int take_headers(struct http_request *rq, struct input *in)
{
	const struct http1_head *h = &in->head;

	rq->headers = calloc(h->nheaders + 1, sizeof(*rq->headers));
	if (!rq->headers)
		return -1;
	for (uint32_t i = 0; i < h->nheaders; i++) {
		const struct http1_header *from = &h->headers[i];

		rq->headers[i] = (struct pair){ cut(in, from->name), cut(in, from->value) };
	}
	rq->nheaders = h->nheaders;
	return 0;
}

static unsigned fail(struct http1_error *err, unsigned status, const char *why)
{
	*err = (struct http1_error){ status, why };
	return status;
}

unsigned http_request_take_head(struct http_request *rq, struct http1_error *err)
{
	struct input *in = rq->conn->in;
	const struct http1_head *h = &in->head;
	bool unique = !(h->repeated & SINGLE);
	const char *bad;
	char *query;

	in->at = h->len;
	rq->old = !h->minor;
	if (http1_framing_of_request(h, &rq->framing, err) != HTTP1_DONE)
		return err->status;
	rq->body_end = rq->framing.body == HTTP1_BODY_NONE;
	rq->close = !rq->framing.keep_alive;
	if (take_headers(rq, in) < 0)
		return fail(err, 503, "out of memory");
	rq->method = cut(in, h->method);
	rq->is_head = strcmp(rq->method, "HEAD") == 0;
	query = cut(in, h->target);
	rq->path = strsep(&query, "?");
	http_request_choose_id(rq);
	if (proxy_addr_take(rq, err))
		return err->status;
	if (!unique)
		return fail(err, 400, "a header that must be unique occurs twice");
	bad = query ? http_parse_query(query, &rq->query, &rq->nquery) : NULL;
	return bad ? fail(err, 400, bad) : 0;
}

void http_request_choose_id(struct http_request *rq)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	const char *theirs = http_header(rq, "X-Request-Id");
	uint64_t r[2] = { 0 };

	if (theirs && *theirs && strlen(theirs) <= ID_MAX &&
	    strspn(theirs, allowed) == strlen(theirs)) {
		memcpy(rq->id, theirs, strlen(theirs) + 1);
		return;
	}
	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		r[0] = (uint64_t)clock_mono_us();
	snprintf(rq->id, sizeof(rq->id), "%016llx%016llx", (unsigned long long)r[0],
		 (unsigned long long)r[1]);
}

/* ---- access ---------------------------------------------------------------------------------- */

const char *http_method(const struct http_request *rq)
{
	return rq->method;
}

const char *http_path(const struct http_request *rq)
{
	return rq->path;
}

const char *http_query(const struct http_request *rq, const char *name)
{
	for (size_t i = 0; i < rq->nquery; i++) {
		if (!strcmp(rq->query[i].name, name))
			return rq->query[i].value;
	}
	return NULL;
}

int http_query_each(const struct http_request *rq, http_pair_fn *fn, void *arg)
{
	int r = 0;

	for (size_t i = 0; i < rq->nquery && !r; i++)
		r = fn(arg, rq->query[i].name, rq->query[i].value);
	return r;
}

const char *http_header(const struct http_request *rq, const char *name)
{
	for (size_t i = 0; i < rq->nheaders; i++) {
		if (!strcasecmp(rq->headers[i].name, name))
			return rq->headers[i].value;
	}
	return NULL;
}

const char *http_id(const struct http_request *rq)
{
	return rq->id;
}

const char *http_peer(const struct http_request *rq)
{
	return rq->peer;
}

void http_trust(struct http_request *rq)
{
	rq->trusted = true;
	MUTEX_GUARD(&rq->server->lock);
	conn_limit_trust(rq->conn);
}

void http_set_urgent(struct http_request *rq)
{
	rq->urgent = true;
}

void http_put_context(struct http_request *rq, void *context, void (*release)(void *context))
{
	rq->context = context;
	rq->release_context = release;
}

void *http_take_context(struct http_request *rq)
{
	return steal_ptr(&rq->context);
}

int64_t http_body_length(const struct http_request *rq)
{
	return rq->framing.has_length ? (int64_t)rq->framing.length : -1;
}

/* ---- query ----------------------------------------------------------------------------------- */

static bool has_name(const struct pair *p, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(p[i].name, name))
			return true;
	return false;
}

const char *http_parse_query(char *text, struct pair **ret, size_t *ret_n)
{
	auto_free struct pair *all = calloc(PARAMETERS_MAX, sizeof(*all));
	size_t n = 0;
	char *save = NULL;

	if (!all)
		return "out of memory";
	for (char *s = strtok_r(text, "&", &save); s; s = strtok_r(NULL, "&", &save)) {
		char *value = strchrnul(s, '=');

		if (*value)
			*value++ = '\0';
		if (n == PARAMETERS_MAX)
			return "query: more than 100 parameters";
		if (!percent_decode(s, true) || !percent_decode(value, true) || has_name(all, n, s))
			return "query: malformed, or a parameter occurs twice";
		all[n++] = (struct pair){ s, value };
	}
	*ret = steal_ptr(&all);
	*ret_n = n;
	return NULL;
}
