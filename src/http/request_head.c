/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the head of a request and copies it, so the handler's thread can use it without the
 * library. Ambiguous requests are rejected here. */

#include "http/request_head.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/percent.h"
#include "http/http_clock.h"
#include "http/internal.h"

/* Headers that must be unique: a second one would make the request ambiguous. */
static const char *const single[] = {
	"Host",		  "Content-Length", "Transfer-Encoding", "Content-Type", "Authorization",
	"X-Api-Key",	  "Expect",	    "X-Request-Id",	 "Range",	 "If-Match",
	"If-None-Match",  "Origin",	    "If-Range",		 "Upgrade",	 "Last-Event-ID",
	"Sec-Fetch-Site",
};

/* The head is in the library's memory as received, except that words and lines end with NULs. `end`
 * is the end of the last word. */
struct copy {
	struct http_request *rq;
	size_t size, n;
	size_t cost; /* memory in addition to the text */
	char *at;
	uintptr_t end;
	bool bad;
};

/* RFC 9110: token. */
static bool is_name(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)s[i]) && !(s[i] && strchr("!#$%&'*+-.^_`|~", s[i])))
			return false;
	}
	return len > 0;
}

static bool is_text(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (((unsigned char)s[i] < ' ' && s[i] != '\t') || s[i] == 0x7f)
			return false;
	}
	return true;
}

size_t http_parts_cost(const char *s, size_t len, char between)
{
	size_t n = 1;

	for (size_t i = 0; i < len; i++)
		n += s[i] == between;
	return n * PAIR_COST;
}

static enum MHD_Result measure_header(void *arg, enum MHD_ValueKind kind, const char *name,
				      size_t name_len, const char *value, size_t value_len)
{
	struct copy *c = arg;

	(void)kind;
	c->n++;
	/* A line ends with two bytes, directly followed by the next. The library also accepts bare
	 * line feeds, a NUL as the end of a value, and folded lines as part of a name; other
	 * parsers do not. A NUL in place of a CR cannot be detected here. */
	c->bad |= (uintptr_t)name != c->end + 2;
	c->end = (uintptr_t)value + value_len;
	c->size += name_len + value_len + 4;
	c->cost += PAIR_COST;
	if (name_len == 6 && !strncasecmp(name, "Cookie", 6))
		c->cost += value_len + http_parts_cost(value, value_len, ';');
	c->bad |= !is_name(name, name_len) || !is_text(value, value_len);
	return MHD_YES;
}

static char *add_text(struct copy *c, const char *s, size_t len)
{
	char *start = c->at;

	if (len)
		memcpy(start, s, len);
	start[len] = '\0';
	c->at += len + 1;
	return start;
}

static enum MHD_Result copy_header(void *arg, enum MHD_ValueKind kind, const char *name,
				   size_t name_len, const char *value, size_t value_len)
{
	struct copy *c = arg;
	struct pair *p = &c->rq->headers[c->rq->nheaders++];

	(void)kind;
	p->name = add_text(c, name, name_len);
	p->value = add_text(c, value, value_len);
	return MHD_YES;
}

static bool occurs_twice(const struct http_request *rq, const char *name)
{
	unsigned n = 0;

	for (size_t i = 0; i < rq->nheaders; i++)
		n += !strcasecmp(rq->headers[i].name, name);
	return n > 1;
}

/* The body has one length, or chunks, or there is none. */
static unsigned check_body(struct http_request *rq, bool old, const char **why)
{
	const char *length = http_header(rq, "Content-Length");
	const char *coding = http_header(rq, "Transfer-Encoding");
	const char *expect = http_header(rq, "Expect");

	*why = "Content-Length and Transfer-Encoding conflict";
	if (coding && (length || old || strcasecmp(coding, "chunked") != 0))
		return 400;
	*why = "Content-Length: must be a number";
	if (length &&
	    (!*length || strspn(length, "0123456789") != strlen(length) || strlen(length) > 18))
		return 400;
	*why = "Expect: must be 100-continue";
	if (expect && strcasecmp(expect, "100-continue") != 0)
		return 417;
	rq->chunked = coding != NULL;
	rq->length = length ? strtoll(length, NULL, 10) : -1;
	rq->has_body = rq->chunked || rq->length > 0;
	rq->expect = expect && !old;
	return 0;
}

static unsigned check_target(const char *target, const char **why)
{
	*why = "request target: must be a path";
	if (target[0] != '/' || strchr(target, '#'))
		return 400;
	for (const char *s = target; *s; s++) {
		if ((unsigned char)*s <= ' ' || *s == 0x7f)
			return 400;
	}
	return 0;
}

static void choose_id(struct http_request *rq)
{
	const char *theirs = http_header(rq, "X-Request-Id");
	uint64_t r[2] = { 0 };

	if (theirs && *theirs && strlen(theirs) <= ID_MAX &&
	    strspn(theirs, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
		    strlen(theirs)) {
		memcpy(rq->id, theirs, strlen(theirs) + 1);
		return;
	}
	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		r[0] = clock_mono_us();
	snprintf(rq->id, sizeof(rq->id), "%016llx%016llx", (unsigned long long)r[0],
		 (unsigned long long)r[1]);
}

static int copy_head(struct http_request *rq, struct copy *c, const char *method,
		     const char *target, char **ret_query)
{
	char *q;

	rq->text = malloc(c->size + strlen(method) + 2 * strlen(target) + 4);
	rq->headers = calloc(c->n + 1, sizeof(*rq->headers));
	if (!rq->text || !rq->headers)
		return -1;
	c->at = rq->text;
	rq->method = add_text(c, method, strlen(method));
	q = strchr(target, '?');
	rq->path = add_text(c, target, q ? (size_t)(q - target) : strlen(target));
	*ret_query = add_text(c, q ? q + 1 : "", q ? strlen(q + 1) : 0);
	rq->is_head = !strcmp(method, "HEAD");
	MHD_get_connection_values_n(rq->mhd, MHD_HEADER_KIND, copy_header, c);
	return 0;
}

static unsigned check_head(struct http_request *rq, const char *version, char *query,
			   const char **why)
{
	bool old = !strcmp(version, "HTTP/1.0");
	unsigned status;

	rq->old = old;
	*why = "unsupported HTTP version; use HTTP/1.1";
	if (!old && strcmp(version, "HTTP/1.1") != 0)
		return 505;
	for (size_t i = 0; i < ARRAY_LEN(single); i++) {
		*why = "a header that must be unique occurs twice";
		if (occurs_twice(rq, single[i]))
			return 400;
	}
	*why = "Host: missing";
	if (!old && !http_header(rq, "Host"))
		return 400;
	status = check_body(rq, old, why);
	if (status)
		return status;
	*why = "query: malformed, or a parameter occurs twice";
	return http_parse_query(query, &rq->query, &rq->nquery) ? 0 : 400;
}

/* Checks that single spaces separate method, target and version, and that an empty line ends the
 * headers. */
static bool is_well_formed(struct http_request *rq, const char *method, const char *url,
			   const char *target, const char *version, uintptr_t end)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(rq->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return info && (uintptr_t)url == (uintptr_t)method + strlen(method) + 1 &&
	       (uintptr_t)version == (uintptr_t)url + strlen(target) + 1 &&
	       (uintptr_t)method + info->header_size == end + 4;
}

unsigned http_read_head(struct http_request *rq, const char *method, const char *url,
			const char *target, const char *version, const char **ret_why)
{
	struct copy c = { .rq = rq, .end = (uintptr_t)version + strlen(version) };
	unsigned status;
	char *query;

	MHD_get_connection_values_n(rq->mhd, MHD_HEADER_KIND, measure_header, &c);
	c.bad |= !is_well_formed(rq, method, url, target, version, c.end);
	if (copy_head(rq, &c, method, target, &query)) {
		*ret_why = "out of memory";
		return 503;
	}
	choose_id(rq);
	c.size += strlen(target);
	c.cost += strchr(target, '?') ? http_parts_cost(target, strlen(target), '&') : 0;
	rq->no_memory = c.size + c.cost > rq->server->opts.max_head + HEAD_EXTRA / 2;
	*ret_why = "request target too long";
	if (strlen(target) > rq->server->opts.max_head)
		return 414;
	*ret_why = "request headers too large (setting: max_head)";
	if (c.n > HEADERS_MAX || c.size + c.cost > rq->server->opts.max_head)
		return 431;
	*ret_why = "malformed request headers";
	if (c.bad || !is_name(method, strlen(method)))
		return 400;
	status = check_target(target, ret_why);
	return status ? status : check_head(rq, version, query, ret_why);
}

struct http_request *http_request_new(struct http_server *s, struct conn *c,
				      struct MHD_Connection *mhd)
{
	struct http_request *rq = calloc(1, sizeof(*rq));

	if (!rq)
		return NULL;
	rq->server = s;
	rq->conn = c;
	rq->mhd = mhd;
	rq->method = rq->path = "";
	rq->refs = 1;
	rq->length = -1;
	rq->upgraded_fd = -1;
	rq->started_us = clock_mono_us();
	memcpy(rq->peer, c->peer, sizeof(rq->peer));
	pthread_mutex_init(&rq->lock, NULL);
	http_cond_init(&rq->cond);
	pthread_mutex_lock(&s->lock);
	s->metrics.requests++;
	pthread_mutex_unlock(&s->lock);
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
	if (rq->response)
		MHD_destroy_response(rq->response);
	byte_ring_fini(&rq->in);
	byte_ring_fini(&rq->out);
	free(rq->whole);
	free(rq->extra);
	free(rq->headers);
	free(rq->query);
	free(rq->text);
	pthread_cond_destroy(&rq->cond);
	pthread_mutex_destroy(&rq->lock);
	free(rq);
}

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
		const struct pair *h = &rq->headers[i];

		if (h->name && !strcasecmp(h->name, name))
			return h->value;
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
	return rq->length;
}

/* ---- query ----------------------------------------------------------------------------------- */

static bool has_name(const struct pair *p, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(p[i].name, name))
			return true;
	return false;
}

bool http_parse_query(char *text, struct pair **ret, size_t *ret_n)
{
	auto_free struct pair *all = calloc(HEADERS_MAX, sizeof(*all));
	size_t n = 0;
	char *save = NULL;

	if (!all)
		return false;
	for (char *s = strtok_r(text, "&", &save); s; s = strtok_r(NULL, "&", &save)) {
		char *value = strchrnul(s, '=');

		if (*value)
			*value++ = '\0';
		if (!percent_decode(s, true) || !percent_decode(value, true) || n == HEADERS_MAX ||
		    has_name(all, n, s))
			return false;
		all[n++] = (struct pair){ s, value };
	}
	*ret = steal_ptr(&all);
	*ret_n = n;
	return true;
}
