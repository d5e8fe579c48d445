/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/http1_writer.h"

#include <string.h>

#include "http1/http1_response.h"

enum { DIGITS = 20 };

static const char NO_START[] = "head: has no first line";
static const char HAS_START[] = "head: has two first lines";

void http1_writer_init(struct http1_writer *w, char *buf, size_t size)
{
	*w = (struct http1_writer){ .buf = buf, .size = size };
}

static void fail(struct http1_writer *w, const char *why)
{
	if (!w->why)
		w->why = why;
}

static struct http1_text text_of(const char *s)
{
	return (struct http1_text){ s, strlen(s) };
}

static void put(struct http1_writer *w, struct http1_text t)
{
	if (!w->why && t.len > w->size - w->len)
		fail(w, "head: too large for its buffer");
	if (w->why)
		return;
	if (t.len)
		memcpy(w->buf + w->len, t.s, t.len);
	w->len += t.len;
}

static void put_str(struct http1_writer *w, const char *s)
{
	put(w, text_of(s));
}

static void put_number(struct http1_writer *w, uint64_t n)
{
	char digits[DIGITS];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + n % 10);
	while (n /= 10);
	put(w, (struct http1_text){ digits + at, sizeof(digits) - at });
}

void http1_writer_request(struct http1_writer *w, const char *method, struct http1_text target)
{
	if (w->len)
		fail(w, HAS_START);
	if (!*method || !http1_text_all(text_of(method), HTTP1_TOKEN))
		fail(w, "method: empty or has invalid characters");
	if (!target.len || !http1_text_all(target, HTTP1_TARGET))
		fail(w, "request target: empty or has invalid characters");
	put_str(w, method);
	put_str(w, " ");
	put(w, target);
	put_str(w, " HTTP/1.1\r\n");
}

void http1_writer_status(struct http1_writer *w, unsigned status, const char *reason)
{
	if (!reason)
		reason = http1_response_reason(status);
	if (w->len)
		fail(w, HAS_START);
	if (status < 100 || status > 599)
		fail(w, "status: must be between 100 and 599");
	if (!http1_text_all(text_of(reason), HTTP1_VALUE))
		fail(w, "reason: invalid character");
	put_str(w, "HTTP/1.1 ");
	put_number(w, status);
	put_str(w, " ");
	put_str(w, reason);
	put_str(w, "\r\n");
}

static void put_header(struct http1_writer *w, struct http1_text name, struct http1_text value)
{
	if (!w->len)
		fail(w, NO_START);
	if (!name.len || !http1_text_all(name, HTTP1_TOKEN))
		fail(w, "a header name that is empty or has invalid characters");
	if (!http1_text_all(value, HTTP1_VALUE))
		fail(w, "a control character in a header");
	put(w, name);
	put_str(w, ": ");
	put(w, value);
	put_str(w, "\r\n");
}

static bool is_length(struct http1_text name)
{
	enum http1_name known = http1_name_find(name);

	return known == HTTP1_CONTENT_LENGTH || known == HTTP1_TRANSFER_ENCODING;
}

static void add_header(struct http1_writer *w, struct http1_text name, struct http1_text value)
{
	if (is_length(name))
		fail(w, "Content-Length and Transfer-Encoding: only by the framing");
	put_header(w, name, value);
}

void http1_writer_header(struct http1_writer *w, const char *name, const char *value)
{
	add_header(w, text_of(name), text_of(value));
}

void http1_writer_copy(struct http1_writer *w, const struct http1_head *h, size_t i)
{
	add_header(w, http1_head_text(h, h->headers[i].name),
		   http1_head_text(h, h->headers[i].value));
}

void http1_writer_framing(struct http1_writer *w, const struct http1_framing *f)
{
	if (!w->len)
		fail(w, NO_START);
	if (w->has_framing)
		fail(w, "Content-Length and Transfer-Encoding: only once");
	w->has_framing = true;
	if (f->body == HTTP1_BODY_CHUNKED) {
		put_header(w, text_of("Transfer-Encoding"), text_of("chunked"));
	} else if (f->body == HTTP1_BODY_LENGTH || f->has_length) {
		put_str(w, "Content-Length: ");
		put_number(w, f->length);
		put_str(w, "\r\n");
	}
}

int http1_writer_end(struct http1_writer *w, size_t *ret_len)
{
	if (!w->len)
		fail(w, NO_START);
	put_str(w, "\r\n");
	if (w->why)
		return -1;
	*ret_len = w->len;
	return 0;
}
