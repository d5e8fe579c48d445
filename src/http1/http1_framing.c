/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/http1_framing.h"

#include <string.h>

enum {
	LENGTH_DIGITS = 18,
	OPTIONS_MAX =
		512, /* bytes of all Connection headers: a proxy searches them for each header */
};

static bool parse_length(struct http1_text t, uint64_t *ret)
{
	uint64_t n = 0;

	if (!t.len || t.len > LENGTH_DIGITS)
		return false;
	for (size_t i = 0; i < t.len; i++) {
		if (t.s[i] < '0' || t.s[i] > '9')
			return false;
		n = n * 10 + (uint64_t)(t.s[i] - '0');
	}
	*ret = n;
	return true;
}

/* What Content-Length and Transfer-Encoding say together. */
static enum http1_result parse_lengths(const struct http1_head *h, struct http1_framing *f,
				       struct http1_error *err)
{
	struct http1_text length, coding;
	bool chunked = http1_head_get(h, HTTP1_TRANSFER_ENCODING, &coding);

	f->has_length = http1_head_get(h, HTTP1_CONTENT_LENGTH, &length);
	if (h->repeated & HTTP1_BIT(HTTP1_CONTENT_LENGTH))
		return http1_bad(err, 400, "Content-Length: occurs twice");
	if (h->repeated & HTTP1_BIT(HTTP1_TRANSFER_ENCODING))
		return http1_bad(err, 400, "Transfer-Encoding: occurs twice");
	if (f->has_length && chunked)
		return http1_bad(err, 400, "Content-Length and Transfer-Encoding conflict");
	if (chunked && !h->minor)
		return http1_bad(err, 400, "Transfer-Encoding: not possible with HTTP/1.0");
	if (chunked && !http1_text_is(coding, "chunked"))
		return http1_bad(err, 501, "Transfer-Encoding: must be chunked");
	if (f->has_length && !parse_length(length, &f->length))
		return http1_bad(err, 400, "Content-Length: must be a number of 1 to 18 digits");
	if (chunked)
		f->body = HTTP1_BODY_CHUNKED;
	else if (f->length)
		f->body = HTTP1_BODY_LENGTH;
	return HTTP1_DONE;
}

/* Connection may not remove what the framing depends on. */
static enum http1_result check_options(const struct http1_head *h, struct http1_error *err)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < h->nheaders; i++) {
		struct http1_text list = http1_head_text(h, h->headers[i].value), option;

		if (h->headers[i].known != HTTP1_CONNECTION)
			continue;
		bytes += list.len;
		if (bytes > OPTIONS_MAX)
			return http1_bad(err, 431, "Connection: longer than 512 bytes");
		while (http1_text_next(&list, &option)) {
			if (!http1_text_all(option, HTTP1_TOKEN) ||
			    http1_name_is_framing(http1_name_find(option)))
				return http1_bad(err, 400, "Connection: invalid option");
		}
	}
	return HTTP1_DONE;
}

/* All that does not depend on the direction. */
static enum http1_result parse_common(const struct http1_head *h, struct http1_framing *f,
				      struct http1_error *err)
{
	if (parse_lengths(h, f, err) != HTTP1_DONE || check_options(h, err) != HTTP1_DONE)
		return HTTP1_BAD;
	f->keep_alive = !http1_head_has_option(h, "close") &&
			(h->minor || http1_head_has_option(h, "keep-alive"));
	return HTTP1_DONE;
}

static bool offers_upgrade(const struct http1_head *h)
{
	return h->minor && h->first[HTTP1_UPGRADE] && http1_head_has_option(h, "upgrade");
}

static enum http1_result check_expect(const struct http1_head *h, struct http1_framing *f,
				      struct http1_error *err)
{
	struct http1_text expect;

	if (!h->minor || !http1_head_get(h, HTTP1_EXPECT, &expect))
		return HTTP1_DONE;
	if ((h->repeated & HTTP1_BIT(HTTP1_EXPECT)) || !http1_text_is(expect, "100-continue"))
		return http1_bad(err, 417, "Expect: must be 100-continue");
	f->expects_continue = f->body != HTTP1_BODY_NONE;
	return HTTP1_DONE;
}

static bool is_method(const struct http1_head *h, const char *method)
{
	size_t len = strlen(method);

	return h->method.len == len && !memcmp(h->base + h->method.at, method, len);
}

enum http1_result http1_framing_of_request(const struct http1_head *h, struct http1_framing *ret,
					   struct http1_error *err)
{
	struct http1_framing f = { 0 };

	if (parse_common(h, &f, err) != HTTP1_DONE || check_expect(h, &f, err) != HTTP1_DONE)
		return HTTP1_BAD;
	/* What follows would be read as body by one parser and as the tunnel by another. */
	if (is_method(h, "CONNECT") && f.body != HTTP1_BODY_NONE)
		return http1_bad(err, 400, "CONNECT: must not have a body");
	f.upgrade = f.body == HTTP1_BODY_NONE && offers_upgrade(h);
	*ret = f;
	return HTTP1_DONE;
}

unsigned http1_framing_answers(const struct http1_head *request, const struct http1_framing *f)
{
	return (is_method(request, "HEAD") ? HTTP1_TO_HEAD : 0u) |
	       (is_method(request, "CONNECT") ? HTTP1_TO_CONNECT : 0u) |
	       (f->upgrade ? HTTP1_TO_UPGRADE : 0u);
}

/* ---- responses ------------------------------------------------------------------------------- */

/* A response that cannot have a body: one that claims to have one might send it. */
static enum http1_result frame_bodiless(const struct http1_head *h, unsigned to,
					struct http1_framing *f, struct http1_error *err)
{
	if (f->body != HTTP1_BODY_NONE)
		return http1_bad(err, 502, "a body where the status allows none");
	f->interim = h->status < 200 && h->status != 101;
	f->keep_alive |= f->interim;
	if (h->status == 101 && (!(to & HTTP1_TO_UPGRADE) || !offers_upgrade(h)))
		return http1_bad(err, 502, "status 101 without a valid Upgrade");
	if (h->status != 204 && !f->interim) {
		f->body = HTTP1_BODY_TUNNEL;
		f->keep_alive = false;
	}
	return HTTP1_DONE;
}

static enum http1_result frame_response(const struct http1_head *h, unsigned to,
					struct http1_framing *f, struct http1_error *err)
{
	bool connected = (to & HTTP1_TO_CONNECT) && h->status / 100 == 2;

	if (parse_common(h, f, err) != HTTP1_DONE)
		return HTTP1_BAD;
	if (h->status < 200 || h->status == 204 || connected)
		return frame_bodiless(h, to, f, err);
	if ((to & HTTP1_TO_HEAD) || h->status == 304) {
		f->body = HTTP1_BODY_NONE;
	} else if (f->body == HTTP1_BODY_NONE && !f->has_length) {
		f->body = HTTP1_BODY_UNTIL_CLOSE;
		f->keep_alive = false;
	}
	return HTTP1_DONE;
}

enum http1_result http1_framing_of_response(const struct http1_head *h, unsigned to,
					    struct http1_framing *ret, struct http1_error *err)
{
	struct http1_framing f = { 0 };

	if (frame_response(h, to, &f, err) != HTTP1_DONE) {
		err->status = 502;
		return HTTP1_BAD;
	}
	*ret = f;
	return HTTP1_DONE;
}
