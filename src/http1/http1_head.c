/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/http1_head.h"

#include <string.h>

enum { START_EXTRA = 48 }; /* of the first line besides the target: method, version, spaces */

void http1_head_init(struct http1_head *h, struct http1_header *headers, size_t max,
		     const struct http1_limits *limits)
{
	*h = (struct http1_head){ .headers = headers, .limits = limits };
	h->max_headers = max < UINT16_MAX ? (uint32_t)max : UINT16_MAX;
}

enum http1_result http1_bad(struct http1_error *err, unsigned status, const char *why)
{
	*err = (struct http1_error){ status, why };
	return HTTP1_BAD;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The offset that the end of this line must not pass. */
static uint32_t line_limit(const struct http1_head *h)
{
	uint64_t start = (uint64_t)h->limits->target + START_EXTRA;

	return !h->has_start && start < h->limits->head ? (uint32_t)start : h->limits->head;
}

static enum http1_result fail_long(const struct http1_head *h, struct http1_error *err)
{
	if (!h->has_start)
		return http1_bad(err, 414, "request target: too long");
	return http1_bad(err, 431, "headers: too large");
}

static enum http1_result fail_control(char c, struct http1_error *err)
{
	if (c == '\n')
		return http1_bad(err, 400, "a line of the head ends with LF instead of CR LF");
	return http1_bad(err, 400, "a control character in the head");
}

/* The result depends on the bytes only, however they arrive: nothing is decided by a byte beyond
 * the limit, and no line is parsed before all its bytes were checked. */
enum http1_result http1_head_next_line(struct http1_head *h, const char *buf, size_t len,
				       struct http1_span *ret, struct http1_error *err)
{
	uint32_t limit = line_limit(h), end = len < limit ? (uint32_t)len : limit;
	size_t at = http1_text_scan(buf, h->scanned, end);

	h->scanned = (uint32_t)at;
	if (at < end && buf[at] != '\r')
		return fail_control(buf[at], err);
	if (at + 1 >= end)
		return end == limit ? fail_long(h, err) : HTTP1_MORE;
	if (buf[at + 1] != '\n')
		return http1_bad(err, 400, "a CR without LF in the head");
	*ret = (struct http1_span){ h->line, (uint32_t)at - h->line };
	h->line = h->scanned = (uint32_t)at + 2;
	return HTTP1_DONE;
}

enum http1_result http1_head_parse_version(struct http1_head *h, struct http1_text t,
					   struct http1_error *err)
{
	if (t.len != 8 || memcmp(t.s, "HTTP/", 5) != 0 || t.s[5] < '0' || t.s[5] > '9' ||
	    t.s[6] != '.' || t.s[7] < '0' || t.s[7] > '9')
		return http1_bad(err, 400, "HTTP version: malformed or missing");
	if (t.s[5] != '1' || t.s[7] > '1')
		return http1_bad(err, 505, "HTTP version: must be HTTP/1.1 or HTTP/1.0");
	h->minor = (uint8_t)(t.s[7] - '0');
	return HTTP1_DONE;
}

/* ---- headers --------------------------------------------------------------------------------- */

static void note_known(struct http1_head *h, enum http1_name known)
{
	if (known == HTTP1_OTHER)
		return;
	if (h->first[known])
		h->repeated |= HTTP1_BIT(known);
	else
		h->first[known] = (uint16_t)h->nheaders;
}

static enum http1_result parse_header(struct http1_head *h, struct http1_span line,
				      struct http1_error *err)
{
	const char *s = h->base + line.at;
	const char *colon = memchr(s, ':', line.len);
	struct http1_text name = { s, colon ? (size_t)(colon - s) : 0 }, value;
	struct http1_header *to;

	if (*s == ' ' || *s == '\t')
		return http1_bad(err, 400, "a folded header line");
	if (!colon)
		return http1_bad(err, 400, "a header line without a colon");
	if (!name.len || !http1_text_all(name, HTTP1_TOKEN))
		return http1_bad(err, 400, "a header name that is empty or has invalid characters");
	if (h->nheaders == h->max_headers)
		return http1_bad(err, 431, "headers: too many");
	value = http1_text_trim((struct http1_text){ colon + 1, line.len - name.len - 1 });
	to = &h->headers[h->nheaders++];
	to->name = (struct http1_span){ line.at, (uint32_t)name.len };
	to->value = (struct http1_span){ (uint32_t)(value.s - h->base), (uint32_t)value.len };
	to->known = http1_name_find(name);
	note_known(h, to->known);
	return HTTP1_DONE;
}

enum http1_result http1_head_next_headers(struct http1_head *h, const char *buf, size_t len,
					  struct http1_error *err)
{
	struct http1_span line;
	enum http1_result r;

	h->base = buf;
	while (!h->done) {
		r = http1_head_next_line(h, buf, len, &line, err);
		if (r != HTTP1_DONE)
			return r;
		h->done = line.len == 0;
		if (!h->done && parse_header(h, line, err) != HTTP1_DONE)
			return HTTP1_BAD;
	}
	h->len = h->line;
	return HTTP1_DONE;
}

enum http1_result http1_head_parse_trailers(struct http1_head *h, const char *buf, size_t len,
					    struct http1_error *err)
{
	enum http1_result r;

	h->has_start = true;
	r = http1_head_next_headers(h, buf, len, err);
	for (uint32_t i = 0; r == HTTP1_DONE && i < h->nheaders; i++) {
		if (http1_name_is_framing(h->headers[i].known))
			r = http1_bad(err, 400, "a trailer that must not be one");
	}
	return r;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

struct http1_text http1_head_text(const struct http1_head *h, struct http1_span s)
{
	return (struct http1_text){ h->base + s.at, s.len };
}

bool http1_head_get(const struct http1_head *h, enum http1_name name, struct http1_text *ret)
{
	unsigned i = h->first[name];

	if (i)
		*ret = http1_head_text(h, h->headers[i - 1].value);
	return i;
}

bool http1_head_find(const struct http1_head *h, const char *lower, struct http1_text *ret)
{
	for (uint32_t i = 0; i < h->nheaders; i++) {
		if (http1_text_is(http1_head_text(h, h->headers[i].name), lower)) {
			*ret = http1_head_text(h, h->headers[i].value);
			return true;
		}
	}
	return false;
}

static bool names_option(const struct http1_head *h, struct http1_text name)
{
	for (uint32_t i = h->first[HTTP1_CONNECTION]; i && i <= h->nheaders; i++) {
		struct http1_text list = http1_head_text(h, h->headers[i - 1].value), option;

		if (h->headers[i - 1].known != HTTP1_CONNECTION)
			continue;
		while (http1_text_next(&list, &option)) {
			if (http1_text_same(option, name))
				return true;
		}
	}
	return false;
}

bool http1_head_has_option(const struct http1_head *h, const char *lower)
{
	return names_option(h, (struct http1_text){ lower, strlen(lower) });
}

bool http1_head_is_hop_by_hop(const struct http1_head *h, size_t i)
{
	static const uint64_t always = HTTP1_BIT(HTTP1_CONNECTION) | HTTP1_BIT(HTTP1_KEEP_ALIVE) |
				       HTTP1_BIT(HTTP1_PROXY_CONNECTION) |
				       HTTP1_BIT(HTTP1_PROXY_AUTHENTICATE) |
				       HTTP1_BIT(HTTP1_PROXY_AUTHORIZATION) | HTTP1_BIT(HTTP1_TE) |
				       HTTP1_BIT(HTTP1_UPGRADE) | HTTP1_BIT(HTTP1_CONTENT_LENGTH) |
				       HTTP1_BIT(HTTP1_TRANSFER_ENCODING);

	return (always & HTTP1_BIT(h->headers[i].known)) ||
	       names_option(h, http1_head_text(h, h->headers[i].name));
}
