/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/http1_request.h"

#include <string.h>

/* ---- authority ------------------------------------------------------------------------------- */

static bool is_port(struct http1_text t)
{
	unsigned port = 0;

	if (!t.len || t.len > 5)
		return false;
	for (size_t i = 0; i < t.len; i++) {
		if (t.s[i] < '0' || t.s[i] > '9')
			return false;
		port = port * 10 + (unsigned)(t.s[i] - '0');
	}
	return port > 0 && port <= 65535;
}

/* [::1] */
static bool is_address(struct http1_text t)
{
	if (t.len < 4 || t.s[0] != '[' || t.s[t.len - 1] != ']')
		return false;
	for (size_t i = 1; i < t.len - 1; i++) {
		if (http1_hex(t.s[i]) < 0 && t.s[i] != ':' && t.s[i] != '.')
			return false;
	}
	return true;
}

bool http1_request_is_authority(struct http1_text t, bool needs_port)
{
	const char *colon = t.len ? memrchr(t.s, ':', t.len) : NULL;
	struct http1_text host = t;

	if (colon && t.s[t.len - 1] != ']') {
		host.len = (size_t)(colon - t.s);
		if (!is_port((struct http1_text){ colon + 1, t.len - host.len - 1 }))
			return false;
	} else if (needs_port) {
		return false;
	}
	return host.len && (http1_text_all(host, HTTP1_HOST_NAME) || is_address(host));
}

/* ---- target ---------------------------------------------------------------------------------- */

static struct http1_span span_of(const struct http1_head *h, struct http1_text t)
{
	return (struct http1_span){ (uint32_t)(t.s - h->base), (uint32_t)t.len };
}

/* http://host/path: false if it is malformed. */
static bool parse_absolute(struct http1_head *h, struct http1_text t)
{
	static const char *const schemes[] = { "http://", "https://" };

	for (size_t i = 0; i < 2; i++) {
		size_t n = strlen(schemes[i]);
		struct http1_text host = { t.s + n, 0 };

		if (t.len < n || !http1_text_is((struct http1_text){ t.s, n }, schemes[i]))
			continue;
		while (host.len < t.len - n && host.s[host.len] != '/' && host.s[host.len] != '?')
			host.len++;
		h->form = HTTP1_FORM_ABSOLUTE;
		h->authority = span_of(h, host);
		h->path =
			span_of(h, (struct http1_text){ host.s + host.len, t.len - n - host.len });
		return http1_request_is_authority(host, false);
	}
	return false;
}

static bool parse_form(struct http1_head *h, struct http1_text method, struct http1_text t)
{
	if (method.len == 7 && !memcmp(method.s, "CONNECT", 7)) {
		h->form = HTTP1_FORM_AUTHORITY;
		h->authority = h->target;
		return http1_request_is_authority(t, true);
	}
	if (*t.s == '/') {
		h->path = h->target;
		return true;
	}
	if (t.len == 1 && *t.s == '*' && method.len == 7 && !memcmp(method.s, "OPTIONS", 7)) {
		h->form = HTTP1_FORM_ASTERISK;
		h->path = h->target;
		return true;
	}
	return parse_absolute(h, t);
}

static enum http1_result parse_target(struct http1_head *h, struct http1_text method,
				      struct http1_text t, struct http1_error *err)
{
	if (t.len > h->limits->target)
		return http1_bad(err, 414, "request target: too long");
	if (!t.len || !http1_text_all(t, HTTP1_TARGET))
		return http1_bad(err, 400, "request target: empty or has invalid characters");
	h->target = span_of(h, t);
	if (!parse_form(h, method, t) || (h->form && !(h->form & h->limits->forms)))
		return http1_bad(err, 400,
				 h->limits->forms ? "request target: malformed"
						  : "request target: must be a path");
	return HTTP1_DONE;
}

/* METHOD SP target SP HTTP/1.1 */
static enum http1_result parse_request_line(struct http1_head *h, struct http1_span line,
					    struct http1_error *err)
{
	struct http1_text t = http1_head_text(h, line);
	const char *first = memchr(t.s, ' ', t.len),
		   *last = t.len ? memrchr(t.s, ' ', t.len) : NULL;
	struct http1_text method = { t.s, first ? (size_t)(first - t.s) : 0 };

	if (!method.len || !http1_text_all(method, HTTP1_TOKEN))
		return http1_bad(err, 400, "request line: no valid method");
	if (first == last)
		return http1_bad(err, 400, "request line: no HTTP version");
	h->method = span_of(h, method);
	if (http1_head_parse_version(
		    h, (struct http1_text){ last + 1, (size_t)(t.s + t.len - last - 1) }, err) !=
	    HTTP1_DONE)
		return HTTP1_BAD;
	return parse_target(h, method, (struct http1_text){ first + 1, (size_t)(last - first - 1) },
			    err);
}

/* ---- host ------------------------------------------------------------------------------------ */

/* A host in the target and another in the header would be two places that a request goes to. */
static enum http1_result check_host(struct http1_head *h, struct http1_error *err)
{
	unsigned i = h->first[HTTP1_HOST];
	struct http1_text host;

	if (h->repeated & HTTP1_BIT(HTTP1_HOST))
		return http1_bad(err, 400, "Host: occurs twice");
	if (!i)
		return h->minor ? http1_bad(err, 400, "Host: missing") : HTTP1_DONE;
	host = http1_head_text(h, h->headers[i - 1].value);
	if (!h->limits->any_host && !http1_request_is_authority(host, false))
		return http1_bad(err, 400, "Host: must be a name or address, with or without port");
	if (h->authority.len && !http1_text_same(host, http1_head_text(h, h->authority)))
		return http1_bad(err, 400, "Host: differs from the request target");
	h->authority = h->headers[i - 1].value;
	return HTTP1_DONE;
}

enum http1_result http1_request_parse(struct http1_head *h, const char *buf, size_t len,
				      struct http1_error *err)
{
	struct http1_span line;
	enum http1_result r;

	h->base = buf;
	if (!h->has_start) {
		r = http1_head_next_line(h, buf, len, &line, err);
		if (r != HTTP1_DONE)
			return r;
		h->has_start = true;
		if (parse_request_line(h, line, err) != HTTP1_DONE)
			return HTTP1_BAD;
	}
	r = http1_head_next_headers(h, buf, len, err);
	return r == HTTP1_DONE ? check_host(h, err) : r;
}
