/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/http1_text.h"

#include <string.h>

enum {
	VISIBLE = HTTP1_VALUE | HTTP1_TARGET,
	TOKEN = VISIBLE | HTTP1_TOKEN,
	HOST = TOKEN | HTTP1_HOST_NAME,
};

/* RFC 9110: token, field-value. RFC 3986: unreserved characters and '%' in a host name. */
const uint8_t http1_classes[256] = {
	['\t'] = HTTP1_VALUE,
	[' '] = HTTP1_VALUE,
	['!'] = TOKEN,
	['"'] = VISIBLE,
	['#'] = HTTP1_VALUE | HTTP1_TOKEN,
	['$'] = TOKEN,
	['%'] = HOST,
	['&' ... '\''] = TOKEN,
	['(' ... ')'] = VISIBLE,
	['*' ... '+'] = TOKEN,
	[','] = VISIBLE,
	['-' ... '.'] = HOST,
	['/'] = VISIBLE,
	['0' ... '9'] = HOST,
	[':' ... '@'] = VISIBLE,
	['A' ... 'Z'] = HOST,
	['[' ... ']'] = VISIBLE,
	['^'] = TOKEN,
	['_'] = HOST,
	['`'] = TOKEN,
	['a' ... 'z'] = HOST,
	['{'] = VISIBLE,
	['|'] = TOKEN,
	['}'] = VISIBLE,
	['~'] = HOST,
	[0x80 ... 0xff] = VISIBLE,
};

bool http1_text_all(struct http1_text t, enum http1_class class)
{
	for (size_t i = 0; i < t.len; i++) {
		if (!http1_is(t.s[i], class))
			return false;
	}
	return true;
}

static char to_lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

bool http1_text_is(struct http1_text t, const char *lower)
{
	size_t i = 0;

	while (i < t.len && lower[i] && to_lower(t.s[i]) == lower[i])
		i++;
	return i == t.len && !lower[i];
}

bool http1_text_same(struct http1_text a, struct http1_text b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		if (to_lower(a.s[i]) != to_lower(b.s[i]))
			return false;
	}
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct http1_text http1_text_trim(struct http1_text t)
{
	while (t.len && is_blank(t.s[0])) {
		t.s++;
		t.len--;
	}
	while (t.len && is_blank(t.s[t.len - 1]))
		t.len--;
	return t;
}

bool http1_text_next(struct http1_text *list, struct http1_text *ret)
{
	while (list->len) {
		const char *comma = memchr(list->s, ',', list->len);
		size_t len = comma ? (size_t)(comma - list->s) : list->len;
		struct http1_text found = http1_text_trim((struct http1_text){ list->s, len });

		len += comma != NULL;
		list->s += len;
		list->len -= len;
		if (found.len) {
			*ret = found;
			return true;
		}
	}
	return false;
}

/* Whether one of eight bytes is below 0x20 or is 0x7f. A borrow reaches only bytes above one that
 * is found anyway. */
static bool has_control(const char *s)
{
	const uint64_t ones = 0x0101010101010101u, high = ones * 0x80;
	uint64_t x, del;

	memcpy(&x, s, sizeof(x));
	del = x ^ (ones * 0x7f);
	return (((x - ones * 0x20) & ~x) | ((del - ones) & ~del)) & high;
}

size_t http1_text_scan(const char *s, size_t at, size_t end)
{
	while (at < end) {
		if (end - at >= 8 && !has_control(s + at)) {
			at += 8;
			continue;
		}
		for (size_t stop = end - at < 8 ? end : at + 8; at < stop; at++) {
			if (!http1_is(s[at], HTTP1_VALUE))
				return at;
		}
	}
	return end;
}

int http1_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = to_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
