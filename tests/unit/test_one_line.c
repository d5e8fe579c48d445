/* SPDX-License-Identifier: Apache-2.0 */
#include "base/one_line.h"

#include "base/json.h"
#include "tap.h"

static const char *plain(const char *text, size_t size)
{
	static char ret[256];

	one_line_print(text, ret, size);
	return ret;
}

static void plain_text_is_unchanged(void)
{
	CHECK_STR(plain("no session 'a': a < b > c", 256), "no session 'a': a < b > c");
	CHECK_STR(plain("", 256), "");
	CHECK_STR(plain("1 <2> 3 <", 256), "1 <2> 3 <");
}

static void tags_and_controls_are_removed(void)
{
	CHECK_STR(plain("<html><head><title>502 Bad Gateway</title></head>\n<body>more", 256),
		  "502 Bad Gateway");
	CHECK_STR(plain("\n\n <p>one</p>\ttwo\x01three\r\nfour", 256), "one two three");
	CHECK_STR(plain("a<br/>b<!-- c -->d", 256), "a b d");
	CHECK_STR(plain("an <open", 256), "an <open");
	/* U+009B is a terminal control too; a two-byte letter is not */
	CHECK_STR(plain("a\xc2\x9b"
			"31mb \xc3\x9f\xc2\xa0",
			256),
		  "a 31mb \xc3\x9f\xc2\xa0");
}

static void long_text_is_truncated(void)
{
	char text[] = "0123456789 123456789 123456789";

	CHECK_STR(plain(text, 12), "01234567...");
	CHECK_STR(plain("0123456789", 12), "0123456789");
	for (size_t size = 8; size < 40; size++) {
		const char *got = plain("\xc3\xa4\xc3\xb6\xc3\xbc\xe2\x82\xac\xe2\x82\xac\xe2\x82"
					"\xac\xe2\x82\xac\xe2\x82\xac",
					size);

		CHECK(strlen(got) < size && json_is_utf8(got, strlen(got)));
	}
	one_line_print(text, text, 12);
	CHECK_STR(text, "01234567...");
}

int main(void)
{
	RUN(plain_text_is_unchanged);
	RUN(tags_and_controls_are_removed);
	RUN(long_text_is_truncated);
	return tap_done();
}
