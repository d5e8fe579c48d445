/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/auto.h"
#include "tap.h"

static char *string_of(const char *bytes, size_t len)
{
	struct json_out j;

	json_out_init(&j, 4096);
	json_out_bytes(&j, NULL, bytes, len);
	return json_out_take(&j, NULL);
}

static void commas_and_nesting(void)
{
	struct json_out j;
	auto_free char *text = NULL;
	size_t len;

	json_out_init(&j, 4096);
	json_out_object(&j, NULL);
	json_out_u64(&j, "a", UINT64_MAX);
	json_out_i64(&j, "b", INT64_MIN);
	json_out_array(&j, "c");
	json_out_bool(&j, NULL, true);
	json_out_null(&j, NULL);
	json_out_object(&j, NULL);
	json_out_end(&j);
	json_out_end(&j);
	json_out_str(&j, "d", "x");
	json_out_str(&j, "e", NULL);
	json_out_end(&j);
	text = json_out_take(&j, &len);
	CHECK(text != NULL);
	CHECK_STR(text, "{\"a\":18446744073709551615,\"b\":-9223372036854775808,"
			"\"c\":[true,null,{}],\"d\":\"x\",\"e\":null}");
	CHECK(len == strlen(text));
}

static void control_characters_are_escaped(void)
{
	auto_free char *a = string_of("a\"b\\c\n\t\r\b\f\x01\x7f", 12);
	auto_free char *b = string_of("x\0y", 3);

	CHECK_STR(a, "\"a\\\"b\\\\c\\n\\t\\r\\b\\f\\u0001\\u007f\"");
	CHECK_STR(b, "\"x\\u0000y\"");
}

static void broken_utf8_becomes_replacement_characters(void)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\"" },
		{ "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"" },
		{ "\xff", "\"\xef\xbf\xbd\"" },
		{ "a\x80z", "\"a\xef\xbf\xbdz\"" },
		{ "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"" }, /* overlong */
		{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" }, /* surrogate */
		{ "\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xe2\x82", "\"\xef\xbf\xbd\"" }, /* truncated: one replacement for the rest */
		{ "\xe2\x82z", "\"\xef\xbf\xbdz\"" },
		{ "\xf0\x9f\x98", "\"\xef\xbf\xbd\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *got = string_of(cases[i].in, strlen(cases[i].in));

		CHECK_STR(got, cases[i].out);
		CHECK(json_is_utf8(got, strlen(got)));
	}
	CHECK(json_is_utf8("gr\xc3\xbc\xc3\x9f", 6));
	CHECK(!json_is_utf8("gr\xc3\xbc\xc3", 5));
	CHECK(json_is_utf8("", 0));
}

/* Every two-byte input, and every byte in the middle of valid text. */
static void output_is_always_utf8(void)
{
	char in[4] = "a";

	for (unsigned i = 0; i < 65536; i++) {
		auto_free char *got = NULL;

		in[1] = (char)(i >> 8);
		in[2] = (char)i;
		got = string_of(in, 4);
		CHECK(got && json_is_utf8(got, strlen(got)));
	}
}

static void base64_pads(void)
{
	static const char *const want[] = { "\"\"", "\"/w==\"", "\"//4=\"", "\"//79\"",
					    "\"//79/A==\"" };

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		struct json_out j;
		auto_free char *text = NULL;

		json_out_init(&j, 100);
		json_out_base64(&j, NULL, "\xff\xfe\xfd\xfc", i);
		text = json_out_take(&j, NULL);
		CHECK_STR(text, want[i]);
	}
}

static void the_maximum_is_enforced(void)
{
	struct json_out j;

	json_out_init(&j, 8);
	json_out_str(&j, NULL, "0123456789");
	CHECK(json_out_take(&j, NULL) == NULL);
}

static void mistakes_give_nothing(void)
{
	struct json_out j;

	json_out_init(&j, 100);
	json_out_object(&j, NULL);
	CHECK(json_out_take(&j, NULL) == NULL); /* left open */
	json_out_init(&j, 100);
	json_out_object(&j, NULL);
	json_out_u64(&j, NULL, 1); /* no name inside an object */
	json_out_end(&j);
	CHECK(json_out_take(&j, NULL) == NULL);
	json_out_init(&j, 100);
	json_out_end(&j);
	CHECK(json_out_take(&j, NULL) == NULL);
	json_out_init(&j, 1000);
	for (int i = 0; i <= JSON_DEPTH_MAX; i++)
		json_out_array(&j, NULL);
	for (int i = 0; i <= JSON_DEPTH_MAX; i++)
		json_out_end(&j);
	CHECK(json_out_take(&j, NULL) == NULL);
}

int main(void)
{
	RUN(commas_and_nesting);
	RUN(control_characters_are_escaped);
	RUN(broken_utf8_becomes_replacement_characters);
	RUN(output_is_always_utf8);
	RUN(base64_pads);
	RUN(the_maximum_is_enforced);
	RUN(mistakes_give_nothing);
	return tap_done();
}
