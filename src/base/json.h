/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON writer. It accepts any bytes and writes valid UTF-8: invalid sequences become U+FFFD. It
 * adds commas and checks nesting. A failure (out of memory, or above the maximum) persists until
 * json_out_take(), so callers check once. Its names differ from those of jansson, which reads JSON.
 */
#ifndef LODGE_BASE_JSON_H
#define LODGE_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 32, JSON_READ_DEPTH_MAX = 64 };

struct json_out {
	char *buf;
	size_t len, cap, max;
	unsigned depth;
	bool failed, first;
	char close[JSON_DEPTH_MAX];
};

/* Never grows beyond `max` bytes. */
void json_out_init(struct json_out *j, size_t max);
void json_out_fini(struct json_out *j);

/* `key` is NULL inside arrays and at the top level, and a name inside objects. */
void json_out_object(struct json_out *j, const char *key);
void json_out_array(struct json_out *j, const char *key);
void json_out_end(struct json_out *j); /* of the innermost object or array */
void json_out_bytes(struct json_out *j, const char *key, const void *bytes, size_t len);
void json_out_str(struct json_out *j, const char *key, const char *s); /* NULL: null */
void json_out_text(struct json_out *j, const char *key, const char *s); /* "" is null too */
void json_out_base64(struct json_out *j, const char *key, const void *bytes, size_t len);
void json_out_u64(struct json_out *j, const char *key, uint64_t v);
void json_out_i64(struct json_out *j, const char *key, int64_t v);
/* Writes null if there is no value. */
void json_out_i64_if(struct json_out *j, const char *key, bool there, int64_t v);
void json_out_bool(struct json_out *j, const char *key, bool v);
void json_out_null(struct json_out *j, const char *key);
/* Writes a value that is JSON already, without checking it. */
void json_out_raw(struct json_out *j, const char *key, const char *json, size_t len);

/* Returns the finished text, NUL-terminated, which the caller owns. NULL if anything failed or is
 * unclosed. */
char *json_out_take(struct json_out *j, size_t *ret_len);

bool json_is_utf8(const void *bytes, size_t len);

/* False: a text of others is nested too deeply to parse it, because parsing and freeing recurse on
 * a thread's small stack. Counts like the parser up to the first byte that is not JSON. *ret_values
 * is at least the number of values, of which one of two bytes takes 250 bytes of memory. */
bool json_is_shallow(const char *text, size_t len, size_t *ret_values);

#endif
