/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/core/field.h"
#include "cli/core/human.h"
#include "cli/core/member.h"
#include "cli/core/terminal.h"
#include "tap.h"

static void spans(void)
{
	static const struct {
		int64_t ms;
		const char *text;
	} all[] = { { -5, "0s" },	 { 499, "0s" },
		    { 999, "1s" },	 { 119499, "119s" },
		    { 119999, "2m" },	 { 120000, "2m" },
		    { 7100000, "118m" }, { 7199999, "2h" },
		    { 7200000, "2h" },	 { 169200000, "47h" },
		    { 17999000, "5h" },	 { 172799999, "2d" },
		    { 172800000, "2d" }, { INT64_MAX, "106751991167d" } };
	char buf[HUMAN_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		CHECK_STR(human_span(all[i].ms, buf), all[i].text);
}

static void sizes(void)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} all[] = { { 0, "0" },
		    { 999, "999" },
		    { 1000, "1.0K" },
		    { 1024, "1.0K" },
		    { 1536, "1.5K" },
		    { 10240, "10K" },
		    { 999 << 10, "999K" },
		    { 1 << 20, "1.0M" },
		    { 12 << 20, "12M" },
		    { UINT64_MAX, "16E" } };
	char buf[HUMAN_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		CHECK_STR(human_bytes(all[i].bytes, buf), all[i].text);
}

static void counts(void)
{
	char buf[HUMAN_TEXT];

	CHECK_STR(human_count(0, "user", NULL, buf), "0 users");
	CHECK_STR(human_count(1, "user", NULL, buf), "1 user");
	CHECK_STR(human_count(1, "process", "processes", buf), "1 process");
	CHECK_STR(human_count(2, "process", "processes", buf), "2 processes");
}

static void texts(void)
{
	static const struct {
		const char *raw, *clean;
	} all[] = {
		{ "plain", "plain" },
		{ "a\033[31mb\007\n\r\t", "a?[31mb????" },
		{ "\xc3\xa4\xe6\x97\xa5", "\xc3\xa4\xe6\x97\xa5" },
		{ "\x80\xff\xc3", "???" }, /* not UTF-8 */
		{ "\xc0\xaf", "??" }, /* overlong */
		{ "\xed\xa0\x80", "???" }, /* a lone surrogate */
		{ "\xf4\x90\x80\x80", "????" }, /* beyond the last code point */
		{ "\xc2\x9b"
		  "31m",
		  "?31m" }, /* the same as ESC [ */
		{ "\xe2\x80\xae"
		  "x\xe2\x81\xa6",
		  "?x?" }, /* changes the direction of text */
	};
	char buf[64];

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		CHECK_STR(human_clean(all[i].raw, buf, sizeof(buf)), all[i].clean);
	/* a character is not split; a wide one takes two columns and fits completely or not at all
	 */
	CHECK_STR(human_clean("\xe6\x97\xa5\xe6\x97\xa5", buf, 6), "\xe6\x97\xa5");
	CHECK(human_width("a\xe6\x97\xa5") == 3);
	CHECK(human_fit("a\xe6\x97\xa5", 2) == 1 && human_fit("a\xe6\x97\xa5", 3) == 4);
}

static void tables(void)
{
	static const struct field fields[] = { { "NAME", TABLE_SHRINK, "name" },
					       { "SIZE", TABLE_RIGHT, "size.bytes", field_bytes },
					       { NULL } };
	auto_json json_t *rows = json_pack("[{s:s, s:{s:i}}, {s:s}]", "name", "a name that is long",
					   "size", "bytes", 12 << 20, "name", "\033x");
	struct field_style style = { .width = 17, .end = "\n" };
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	field_print_table_as(fields, rows, to, &style);
	fclose(to);
	CHECK_STR(text, "NAME         SIZE\n"
			"a name tha\xe2\x80\xa6   12M\n"
			"?x              -\n");
	free(text);
}

static bool strips(const char *from, const char *to)
{
	char bytes[128];
	size_t n = strlen(from);

	memcpy(bytes, from, n + 1);
	n = terminal_strip_reports(bytes, n);
	return n == strlen(to) && memcmp(bytes, to, n) == 0;
}

static void reports(void)
{
	CHECK(strips("ls\n", "ls\n") && strips("", "") && strips("\033", "\033"));
	CHECK(strips("a\033[24;80Rb", "ab"));
	CHECK(strips("\033[?64;1;2c\033[>84;0;0cls", "ls"));
	CHECK(strips("\033]11;rgb:0000/0000/0000\033\\x\033]10;?\ay", "xy"));
	CHECK(strips("\033P1$r0m\033\\z", "z") && strips("\033[?2004;2$yq", "q"));
	/* keys */
	CHECK(strips("\033[A\033[1;5C\033OP\033[3~\033x", "\033[A\033[1;5C\033OP\033[3~\033x"));
	CHECK(strips("\033[", "\033[") && strips("\033[12;", "\033[12;") &&
	      strips("\033]0;", "\033]0;"));
}

int main(void)
{
	RUN(reports);
	RUN(spans);
	RUN(sizes);
	RUN(counts);
	RUN(texts);
	RUN(tables);
	return tap_done();
}
