/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/vec.h"

void json_out_init(struct json_out *j, size_t max)
{
	*j = (struct json_out){ .max = max, .first = true };
}

void json_out_fini(struct json_out *j)
{
	free(j->buf);
	*j = (struct json_out){ .failed = true };
}

static bool reserve(struct json_out *j, size_t more)
{
	if (j->failed || more > j->max || j->len > j->max - more ||
	    vec_reserve(&j->buf, &j->cap, j->len + more) < 0)
		j->failed = true;
	return !j->failed;
}

static void put(struct json_out *j, const void *p, size_t n)
{
	if (!n || !reserve(j, n))
		return;
	memcpy(j->buf + j->len, p, n);
	j->len += n;
}

static void put_str(struct json_out *j, const char *s)
{
	put(j, s, strlen(s));
}

/* Length of the UTF-8 sequence at p, or 0 if it is invalid (including overlong forms, surrogates
 * and values above U+10FFFF). *bad: the number of bytes that one replacement character then
 * replaces. */
static size_t utf8_len(const unsigned char *p, size_t n, size_t *bad)
{
	unsigned char lo = 0x80, hi = 0xbf;
	size_t want;

	*bad = 1;
	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	want = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f;
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	if (n < 2 || p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < want; i++) {
		*bad = i;
		if (i >= n || (p[i] & 0xc0) != 0x80)
			return 0;
	}
	return want;
}

bool json_is_utf8(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t n, bad;

	for (size_t i = 0; i < len; i += n) {
		n = utf8_len(p + i, len - i, &bad);
		if (!n)
			return false;
	}
	return true;
}

static void put_escaped_char(struct json_out *j, unsigned char c)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *at = c ? strchr(from, c) : NULL;
	char text[8] = "\\";

	if (at) {
		text[1] = to[at - from];
		put(j, text, 2);
		return;
	}
	snprintf(text, sizeof(text), "\\u%04x", c);
	put_str(j, text);
}

/* The fast path: most bytes are plain. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void put_string(struct json_out *j, const unsigned char *p, size_t len)
{
	size_t run = 0, n, bad;

	put(j, "\"", 1);
	for (size_t i = 0; i < len && !j->failed;) {
		if (is_plain(p[i])) {
			i++;
			continue;
		}
		n = utf8_len(p + i, len - i, &bad); /* 1: must be escaped; 0: invalid */
		if (n > 1) {
			i += n;
			continue;
		}
		put(j, p + run, i - run);
		if (n)
			put_escaped_char(j, p[i]);
		else
			put_str(j, "\xef\xbf\xbd");
		i += n ? 1 : bad;
		run = i;
	}
	if (!j->failed && len > run)
		put(j, p + run, len - run);
	put(j, "\"", 1);
}

static void begin_value(struct json_out *j, const char *key)
{
	bool object = j->depth && j->close[j->depth - 1] == '}';

	if (object != (key != NULL) || (!j->depth && j->len))
		j->failed = true; /* A caller's mistake must not produce invalid JSON. */
	if (!j->first)
		put(j, ",", 1);
	j->first = false;
	if (key) {
		put_string(j, (const unsigned char *)key, strlen(key));
		put(j, ":", 1);
	}
}

static void open_scope(struct json_out *j, const char *key, char opening, char closing)
{
	begin_value(j, key);
	if (j->depth == JSON_DEPTH_MAX) {
		j->failed = true;
		return;
	}
	put(j, &opening, 1);
	j->close[j->depth++] = closing;
	j->first = true;
}

void json_out_object(struct json_out *j, const char *key)
{
	open_scope(j, key, '{', '}');
}

void json_out_array(struct json_out *j, const char *key)
{
	open_scope(j, key, '[', ']');
}

void json_out_end(struct json_out *j)
{
	if (!j->depth) {
		j->failed = true;
		return;
	}
	put(j, &j->close[--j->depth], 1);
	j->first = false;
}

void json_out_bytes(struct json_out *j, const char *key, const void *bytes, size_t len)
{
	begin_value(j, key);
	put_string(j, bytes, len);
}

void json_out_str(struct json_out *j, const char *key, const char *s)
{
	if (s)
		json_out_bytes(j, key, s, strlen(s));
	else
		json_out_null(j, key);
}

void json_out_base64(struct json_out *j, const char *key, const void *bytes, size_t len)
{
	begin_value(j, key);
	put(j, "\"", 1);
	if (reserve(j, BASE64_ENCODED(len))) {
		base64_encode(bytes, len, j->buf + j->len);
		j->len += BASE64_ENCODED(len);
	}
	put(j, "\"", 1);
}

void json_out_u64(struct json_out *j, const char *key, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	begin_value(j, key);
	put_str(j, text);
}

void json_out_i64(struct json_out *j, const char *key, int64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, v);
	begin_value(j, key);
	put_str(j, text);
}

void json_out_bool(struct json_out *j, const char *key, bool v)
{
	begin_value(j, key);
	put_str(j, v ? "true" : "false");
}

void json_out_null(struct json_out *j, const char *key)
{
	begin_value(j, key);
	put_str(j, "null");
}

void json_out_text(struct json_out *j, const char *key, const char *s)
{
	json_out_str(j, key, s && *s ? s : NULL);
}

void json_out_i64_if(struct json_out *j, const char *key, bool there, int64_t v)
{
	if (there)
		json_out_i64(j, key, v);
	else
		json_out_null(j, key);
}

void json_out_raw(struct json_out *j, const char *key, const char *json, size_t len)
{
	begin_value(j, key);
	put(j, json, len);
}

char *json_out_take(struct json_out *j, size_t *ret_len)
{
	char *text = NULL;

	put(j, "", 1);
	if (!j->failed && !j->depth) {
		text = j->buf;
		if (ret_len)
			*ret_len = j->len - 1;
		j->buf = NULL;
	}
	json_out_fini(j);
	return text;
}

bool json_is_shallow(const char *text, size_t len, size_t *ret_values)
{
	bool quoted = false;
	size_t depth = 0;

	*ret_values = 1;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			quoted = !quoted;
		else if (quoted && text[i] == '\\')
			i++;
		else if (!quoted && (text[i] == '{' || text[i] == '['))
			depth++, ++*ret_values;
		else if (!quoted && text[i] == ',')
			++*ret_values;
		else if (!quoted && depth && (text[i] == '}' || text[i] == ']'))
			depth--;
		if (depth > JSON_READ_DEPTH_MAX)
			return false;
	}
	return true;
}
