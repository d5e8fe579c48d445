/* SPDX-License-Identifier: Apache-2.0 */
/* Forms with files: the result is the same however the input is split. */
#include "api/core/multipart.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tap.h"

static char record[8192]; /* a record of the callbacks */
static size_t record_len;
static struct err err;
static int refuse_at; /* the number of the callback that fails; 0: none */

static int note(const char *text)
{
	record_len +=
		(size_t)snprintf(record + record_len, sizeof(record) - record_len, "%s", text);
	if (refuse_at && --refuse_at == 0)
		return err_set(&err, ERR_LIMIT, "no more");
	return 0;
}

static int begin(void *arg, const char *name, const char *filename, struct err *e)
{
	char text[256];

	(void)arg, (void)e;
	snprintf(text, sizeof(text), "<%s%s%s>", name, filename ? "|" : "",
		 filename ? filename : "");
	return note(text);
}

static int data(void *arg, const char *bytes, size_t len, struct err *e)
{
	(void)arg, (void)e;
	for (size_t i = 0; i < len; i++) {
		char text[8] = { bytes[i] };

		if (bytes[i] < ' ')
			snprintf(text, sizeof(text), "\\%02x", bytes[i] & 0xff);
		if (note(text) < 0)
			return -1;
	}
	return 0;
}

static int end(void *arg, struct err *e)
{
	(void)arg, (void)e;
	return note(";");
}

static const struct multipart_ops ops = { begin, data, end };

/* Parses in pieces that end at `first` and `second`. */
static int parse(const char *type, const char *body, size_t len, size_t first, size_t second)
{
	static struct multipart m;
	const size_t cuts[] = { 0, first, second, len };

	record_len = 0;
	record[0] = '\0';
	if (multipart_init(&m, type, &ops, NULL, &err) < 0)
		return -1;
	for (size_t i = 0; i < 3; i++) {
		size_t n = cuts[i + 1] - cuts[i];
		char *piece = malloc(
			n ? n : 1); /* allocated separately, so that ASan detects each overrun */
		int r;

		memcpy(piece, body + cuts[i], n);
		r = multipart_feed(&m, piece, n, &err);
		free(piece);
		if (r < 0)
			return -1;
	}
	return multipart_finish(&m, &err);
}

static int whole(const char *body)
{
	return parse("multipart/form-data; boundary=b", body, strlen(body), 0, 0);
}

#define DISPOSITION "Content-Disposition: form-data; "
#define FORM                                                                                       \
	"--b\r\n" DISPOSITION "name=\"session_id\"\r\n\r\nses_1\r\n"                               \
	"--b \t\r\ncontent-type: text/plain\r\nCONTENT-DISPOSITION:form-data; name=file; "         \
	"filename=\"a \\\"b\\\".txt\"\r\n\r\n\r\n-\r\n--\r\n--bx\r--b\r\r\n\n\r\n--b--\r\nbehind"

static void a_form_is_read(void)
{
	static const char good[] = "--b\r\n" DISPOSITION "name=\"session_id\"\r\n\r\nses_1\r\n"
				   "--b\r\n" DISPOSITION "name=\"file\"; filename=\"x\"\r\n"
				   "Content-Type: text/plain\r\n\r\nbytes\r\n--b--\r\n";

	CHECK(whole(good) == 0);
	CHECK_STR(record, "<session_id>ses_1;<file|x>bytes;");
	CHECK(whole("preamble\r\n--b\r\n" DISPOSITION "name=a\r\n\r\n\r\n--b--") == 0);
	CHECK_STR(record, "<a>;");
	CHECK(whole("--b--") == 0);
	CHECK_STR(record, "");
}

/* Every pair of positions for two cuts. */
static void pieces_make_no_difference(void)
{
	static const char body[] = "before\r\n--b\r\n" DISPOSITION "name=\"f\"; filename=\"q\"\r\n"
				   "X: y\r\n\r\n\r\n-\r\n--\r\r\n--a\r\n\r\n--b \r\n" DISPOSITION
				   "name=g\r\n\r\n\r\n--b--\r\nafter";
	static const char want[] = "<f|q>\\0d\\0a-\\0d\\0a--\\0d\\0d\\0a--a\\0d\\0a;<g>;";
	size_t n = sizeof(body) - 1, bad = 0;

	for (size_t i = 0; i <= n; i++)
		for (size_t j = i; j <= n; j++)
			bad += parse("multipart/form-data; boundary=\"b\"", body, n, i, j) != 0 ||
			       strcmp(record, want) != 0;
	CHECK(bad == 0);
}

static void every_prefix_is_unfinished(void)
{
	static const char body[] = "--b\r\n" DISPOSITION "name=a\r\n\r\nx\r\n--b--";
	size_t bad = 0;

	for (size_t i = 0; i + 1 < sizeof(body); i++)
		bad += parse("multipart/form-data;boundary=b", body, i, i / 2, i) == 0;
	CHECK(bad == 0 && whole(body) == 0);
}

static void names_are_read_unchanged(void)
{
	static const struct {
		const char *header, *says;
	} names[] = {
		{ "name=\"a\"; filename=\"\"", "<a|>;" },
		{ "name=\"a\"; filename=\"a\\\\b\\\"c\"", "<a|a\\b\"c>;" },
		{ "name=\"a\"; filename=\"C:\\dir\\f\"", "<a|C:\\dir\\f>;" },
		{ "name=\"a\"; filename=\"x\"; filename*=UTF-8''%c3%A9%20y", "<a|\xc3\xa9 y>;" },
		{ "name=\"a\"; filename*=utf-8'en'z; filename=\"x\"", "<a|z>;" },
		{ "name=a;filename=b;", "<a|b>;" },
		{ "FileName=b; Name=a", "<a|b>;" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char body[512];

		snprintf(body, sizeof(body), "--b\r\n" DISPOSITION "%s\r\n\r\n\r\n--b--",
			 names[i].header);
		CHECK(whole(body) == 0);
		CHECK_STR(record, names[i].says);
	}
}

static void malformed_forms_are_refused(void)
{
	static const char nul[] = "--b\r\n" DISPOSITION "name=a\0\r\n\r\n\r\n--b--";
	static const char *const bad[] = {
		"",
		"nothing of the kind",
		"--b\r\n\r\nx\r\n--b--",
		"--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--",
		"--bad\r\n" DISPOSITION "name=a\r\n\r\nx\r\n--b--",
		"--b\n" DISPOSITION "name=a\n\nx\n--b--",
		"--b\r\n" DISPOSITION "name=a\n\r\n\r\nx\r\n--b--",
		"--b\r\n" DISPOSITION "name=a\r\n folded: x\r\n\r\nx\r\n--b--",
		"--b\r\n" DISPOSITION "name=a\r\n: x\r\n\r\nx\r\n--b--",
		"--b\r\n" DISPOSITION "name=a\r\nno colon\r\n\r\nx\r\n--b--",
		"--b\r\n" DISPOSITION "name=a; name=b\r\n\r\nx\r\n--b--",
		"--b\r\n" DISPOSITION "name=\"a\r\n\r\nx\r\n--b--",
		"--b\r\n" DISPOSITION "name=a\r\n" DISPOSITION "name=a\r\n\r\nx\r\n--b--",
		"--b\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--b--",
		"--b\r\n" DISPOSITION "name=a; filename*=latin1''x\r\n\r\nx\r\n--b--",
		"--b\r\n" DISPOSITION "name=a; filename*=UTF-8''%zz\r\n\r\nx\r\n--b--",
		"--b\r\n" DISPOSITION "name=a; filename*=UTF-8''%00\r\n\r\nx\r\n--b--",
		"--b\r\n" DISPOSITION
		"name=a\r\nContent-Transfer-Encoding: base64\r\n\r\nx\r\n--b--",
		"--b\r\n" DISPOSITION "name=a\r\n\r\nx\r\n--bx",
		"--b\r\n" DISPOSITION "name=a\r\n\r\nx\r\n--b-x",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err = (struct err){ 0 };
		if (whole(bad[i]) == 0)
			printf("# taken: %s\n", bad[i]);
		CHECK(err.code == ERR_INVALID);
	}
	CHECK(parse("multipart/form-data; boundary=b", nul, sizeof(nul) - 1, 0, 0) < 0);
}

static void everything_is_bounded(void)
{
	static char big[MULTIPART_AROUND + 4096];
	size_t n;

	memset(big, 'x', sizeof(big));
	CHECK(parse("multipart/form-data; boundary=b", big, sizeof(big), 0, 0) == -1);
	n = (size_t)sprintf(big, "--b\r\n");
	memset(big + n, 'h', MULTIPART_HEAD + 1);
	CHECK(parse("multipart/form-data; boundary=b", big, n + MULTIPART_HEAD + 1, 0, 0) == -1);
	n = 0;
	for (int i = 0; i <= MULTIPART_PARTS; i++)
		n += (size_t)sprintf(big + n, "--b\r\n" DISPOSITION "name=a\r\n\r\n\r\n");
	CHECK(parse("multipart/form-data; boundary=b", big, n, 0, 0) == -1);
	CHECK(strstr(err.msg, "too many parts"));
	n = (size_t)sprintf(big, "--b--");
	memset(big + n, 'e', MULTIPART_AROUND + 1);
	CHECK(parse("multipart/form-data; boundary=b", big, n + MULTIPART_AROUND + 1, 0, 0) == -1);
	n = (size_t)sprintf(big, "--b");
	memset(big + n, ' ', MULTIPART_AROUND + 1);
	CHECK(parse("multipart/form-data; boundary=b", big, n + MULTIPART_AROUND + 1, 0, 0) == -1);
}

static void the_type_has_a_boundary(void)
{
	static const char *const good[] = {
		"multipart/form-data; boundary=b",
		"Multipart/Form-Data;charset=utf-8 ; BOUNDARY=\"b\"",
		"multipart/form-data; boundary=\"b\";",
	};
	static const char *const bad[] = {
		"multipart/form-data",
		"multipart/form-data; boundary=",
		"multipart/form-data; boundary=\"\"",
		"multipart/form-data; boundary=\"b",
		"multipart/form-data; boundary=\"b \"",
		"multipart/form-data; boundary=\"a\r\"",
		"multipart/form-data; boundary=b; boundary=b",
		"multipart/form-data; boundary b",
		"multipart/form-data; boundary="
		"01234567890123456789012345678901234567890123456789012345678901234567890",
	};
	static const char *const other[] = { "text/plain", "multipart/form-datax; boundary=b",
					     "multipart/mixed; boundary=b" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(parse(good[i], "--b--", 5, 0, 0) == 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(parse(bad[i], "--b--", 5, 0, 0) == -1 && err.code == ERR_INVALID && !err.sys);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		CHECK(parse(other[i], "--b--", 5, 0, 0) == -1 && err.sys == EMEDIUMTYPE);
	CHECK(parse(NULL, "--b--", 5, 0, 0) == -1 && err.sys == EMEDIUMTYPE);
	CHECK(parse("multipart/form-data; boundary="
		    "0123456789012345678901234567890123456789012345678901234567890123456789",
		    "--0123456789012345678901234567890123456789012345678901234567890123456789--",
		    74, 9, 70) == 0);
}

static void a_callback_can_end_it(void)
{
	static const char body[] = "--b\r\n" DISPOSITION "name=a\r\n\r\nxy\r\n--b--";

	for (int i = 1; i <= 4; i++) {
		refuse_at = i;
		CHECK(whole(body) == -1);
		CHECK(err.code == ERR_LIMIT);
	}
	refuse_at = 5;
	CHECK(whole(body) == 0);
	refuse_at = 0;
	CHECK(whole(FORM) == -1); /* a boundary followed by other bytes is refused */
}

int main(void)
{
	RUN(a_form_is_read);
	RUN(pieces_make_no_difference);
	RUN(every_prefix_is_unfinished);
	RUN(names_are_read_unchanged);
	RUN(malformed_forms_are_refused);
	RUN(everything_is_bounded);
	RUN(the_type_has_a_boundary);
	RUN(a_callback_can_end_it);
	return tap_done();
}
