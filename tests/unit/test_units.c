/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include "base/array.h"
#include "tap.h"

static void bytes_are_powers_of_1024(void)
{
	static const struct {
		const char *text;
		uint64_t want;
	} cases[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "256M", 256ull << 20 },
		{ "256m", 256ull << 20 },
		{ "1.5G", 3ull << 29 },
		{ "0.5k", 512 },
		{ "10MiB", 10ull << 20 },
		{ "10mb", 10ull << 20 },
		{ "1T", 1ull << 40 },
		{ "7b", 7 },
		{ "1.000000001", 2 }, /* rounded up: never less than the request */
		{ "18446744073709551615", UINT64_MAX },
		{ "16777215T", 16777215ull << 40 },
	};
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t got = 99;

		CHECK(units_parse_bytes("x", cases[i].text, &got, &err) == 0);
		CHECK(got == cases[i].want);
	}
}

static void invalid_input_is_refused_and_does_not_change_the_result(void)
{
	static const char *const bad[] = {
		"",    " ",   "-1",  "+1",   "1.",	     ".5",   "1..5",
		"1,5", "M",   "12X", "12 M", "0x10",	     "1e3",  "nan",
		"inf", "1MM", " 12", "12\n", "1.0000000001", "\xff", "12M ",
	};
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		uint64_t got = 99;

		CHECK(units_parse_bytes("x", bad[i], &got, &err) == -1);
		CHECK(err.code == ERR_INVALID && got == 99);
	}
}

static void overflow_is_refused(void)
{
	static const char *const large[] = {
		"18446744073709551616", "99999999999999999999999999",  "16777216T",
		"18014398509481984K",	"99999999999999999999999999T", "18446744073709551615.5",
	};
	struct err err;
	uint64_t got = 99;

	for (size_t i = 0; i < ARRAY_LEN(large); i++) {
		CHECK(units_parse_bytes("--memory", large[i], &got, &err) == -1);
		CHECK(strstr(err.msg, "is too large"));
	}
	CHECK(units_parse_ms("t", "213503982335d", &got, &err) == -1);
	CHECK(got == 99);
}

static void the_message_names_position_and_text(void)
{
	struct err err;
	uint64_t got;

	units_parse_bytes("--memory", "lots", &got, &err);
	CHECK_STR(err.msg, "--memory: \"lots\" is not a size (like 256M or 1.5G)");
	units_parse_ms("--timeout", "soon", &got, &err);
	CHECK_STR(err.msg, "--timeout: \"soon\" is not a time (like 30s or 500ms)");
	units_parse_milli("--cpus", "all", &got, &err);
	CHECK_STR(err.msg, "--cpus: \"all\" is not a number (like 2 or 0.5)");
	units_parse_milli("--cpus", "0.1234", &got, &err);
	CHECK_STR(err.msg, "--cpus: \"0.1234\" has more than three decimal places");
	units_parse_count("--pids", "3", 4, 10, &got, &err);
	CHECK_STR(err.msg, "--pids: must be between 4 and 10, not 3");
	units_parse_count("--pids", "3.5", 4, 10, &got, &err);
	CHECK_STR(err.msg, "--pids: \"3.5\" is not a whole number");
	units_parse_bytes("--memory", "999999T999999T999999T999999T999999T999999T", &got, &err);
	CHECK(strlen(err.msg) < 120);
}

static void times_are_milliseconds(void)
{
	struct err err;
	uint64_t got;

	CHECK(!units_parse_ms("t", "30", &got, &err) && got == 30000);
	CHECK(!units_parse_ms("t", "30s", &got, &err) && got == 30000);
	CHECK(!units_parse_ms("t", "500ms", &got, &err) && got == 500);
	CHECK(!units_parse_ms("t", "0.0001s", &got, &err) && got == 1);
	CHECK(!units_parse_ms("t", "1.5m", &got, &err) && got == 90000);
	CHECK(!units_parse_ms("t", "2h", &got, &err) && got == 7200000);
	CHECK(!units_parse_ms("t", "1d", &got, &err) && got == 86400000);
	CHECK(units_parse_ms("t", "1w", &got, &err) == -1);
}

static void shares_and_counts(void)
{
	struct err err;
	uint64_t got;

	CHECK(!units_parse_milli("c", "0.5", &got, &err) && got == 500);
	CHECK(!units_parse_milli("c", "2", &got, &err) && got == 2000);
	CHECK(!units_parse_milli("c", "0.125", &got, &err) && got == 125);
	CHECK(!units_parse_count("c", "7", 1, 10, &got, &err) && got == 7);
	CHECK(units_parse_count("c", "11", 1, 10, &got, &err) == -1);
	CHECK(units_parse_count("c", "7k", 1, 10, &got, &err) == -1);
}

static void formatting_is_exact(void)
{
	char buf[SIZE_TEXT];

	CHECK_STR(units_format(256ull << 20, buf), "256M");
	CHECK_STR(units_format(3ull << 29, buf), "1536M");
	CHECK_STR(units_format(1ull << 40, buf), "1T");
	CHECK_STR(units_format(1000, buf), "1000 bytes");
	CHECK_STR(units_format(0, buf), "0 bytes");
}

int main(void)
{
	RUN(bytes_are_powers_of_1024);
	RUN(invalid_input_is_refused_and_does_not_change_the_result);
	RUN(overflow_is_refused);
	RUN(the_message_names_position_and_text);
	RUN(times_are_milliseconds);
	RUN(shares_and_counts);
	RUN(formatting_is_exact);
	return tap_done();
}
