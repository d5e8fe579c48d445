/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

#include "base/array.h"
#include "http1/http1_request.h"
#include "http1/http1_writer.h"

static char buf[256];

static struct http1_text text(const char *s)
{
	return (struct http1_text){ s, strlen(s) };
}

static void writes_a_request(void)
{
	struct http1_framing f = { .body = HTTP1_BODY_CHUNKED };
	struct http1_writer w;
	size_t len = 0;

	http1_writer_init(&w, buf, sizeof(buf) - 1);
	http1_writer_request(&w, "POST", text("/a?b"));
	http1_writer_header(&w, "Host", "a");
	http1_writer_framing(&w, &f);
	CHECK(http1_writer_end(&w, &len) == 0);
	buf[len] = '\0';
	CHECK_STR(buf, "POST /a?b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
}

static void writes_a_response(void)
{
	struct http1_framing f = { .body = HTTP1_BODY_LENGTH, .length = UINT64_MAX };
	struct http1_writer w;
	size_t len = 0;

	http1_writer_init(&w, buf, sizeof(buf) - 1);
	http1_writer_status(&w, 404, NULL);
	http1_writer_header(&w, "X", "");
	http1_writer_framing(&w, &f);
	CHECK(http1_writer_end(&w, &len) == 0);
	buf[len] = '\0';
	CHECK_STR(buf, "HTTP/1.1 404 Not Found\r\nX: \r\n"
		       "Content-Length: 18446744073709551615\r\n\r\n");
}

static void a_length_is_written_where_no_body_follows(void)
{
	static const struct {
		struct http1_framing f;
		const char *want;
	} rows[] = {
		{ { .body = HTTP1_BODY_NONE }, "HTTP/1.1 200 a\r\n\r\n" },
		{ { .body = HTTP1_BODY_NONE, .has_length = true, .length = 7 },
		  "HTTP/1.1 200 a\r\nContent-Length: 7\r\n\r\n" },
		{ { .body = HTTP1_BODY_UNTIL_CLOSE }, "HTTP/1.1 200 a\r\n\r\n" },
		{ { .body = HTTP1_BODY_TUNNEL }, "HTTP/1.1 200 a\r\n\r\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct http1_writer w;
		size_t len = 0;

		http1_writer_init(&w, buf, sizeof(buf) - 1);
		http1_writer_status(&w, 200, "a");
		http1_writer_framing(&w, &rows[i].f);
		CHECK(http1_writer_end(&w, &len) == 0);
		buf[len] = '\0';
		CHECK_STR(buf, rows[i].want);
	}
}

static bool refuses_header(const char *name, const char *value)
{
	struct http1_writer w;
	size_t len = 0;

	http1_writer_init(&w, buf, sizeof(buf));
	http1_writer_status(&w, 200, NULL);
	http1_writer_header(&w, name, value);
	http1_writer_header(&w, "X", "after");
	return http1_writer_end(&w, &len) < 0 && w.why && !len;
}

static void nothing_can_add_a_line(void)
{
	struct http1_writer w;
	size_t len;

	CHECK(refuses_header("X", "a\r\nY: b") && refuses_header("X", "a\nb"));
	CHECK(refuses_header("X", "a\rb") && refuses_header("X", "a\x7f"));
	CHECK(refuses_header("X\r\nY", "a") && refuses_header("X:", "a"));
	CHECK(refuses_header("", "a") && refuses_header("X ", "a"));
	http1_writer_init(&w, buf, sizeof(buf));
	http1_writer_status(&w, 200, "a\r\nX: b");
	CHECK(http1_writer_end(&w, &len) < 0);
	http1_writer_init(&w, buf, sizeof(buf));
	http1_writer_request(&w, "GET", text("/ HTTP/1.1\r\nX: "));
	CHECK(http1_writer_end(&w, &len) < 0);
	http1_writer_init(&w, buf, sizeof(buf));
	http1_writer_request(&w, "GET /", text("/"));
	CHECK(http1_writer_end(&w, &len) < 0);
	http1_writer_init(&w, buf, sizeof(buf));
	http1_writer_request(&w, "GET", (struct http1_text){ "/\0a", 3 });
	CHECK(http1_writer_end(&w, &len) < 0);
}

static void lengths_come_from_the_framing_only(void)
{
	struct http1_framing f = { .body = HTTP1_BODY_CHUNKED };
	struct http1_writer w;
	size_t len;

	CHECK(refuses_header("Content-Length", "1"));
	CHECK(refuses_header("transfer-encoding", "chunked"));
	http1_writer_init(&w, buf, sizeof(buf));
	http1_writer_status(&w, 200, NULL);
	http1_writer_framing(&w, &f);
	http1_writer_framing(&w, &f);
	CHECK(http1_writer_end(&w, &len) < 0);
}

static void bad_starts_are_refused(void)
{
	struct http1_writer w;
	size_t len;

	http1_writer_init(&w, buf, sizeof(buf));
	CHECK(http1_writer_end(&w, &len) < 0);
	http1_writer_init(&w, buf, sizeof(buf));
	http1_writer_status(&w, 99, NULL);
	CHECK(http1_writer_end(&w, &len) < 0);
	http1_writer_init(&w, buf, sizeof(buf));
	http1_writer_status(&w, 200, NULL);
	http1_writer_status(&w, 200, NULL);
	CHECK(http1_writer_end(&w, &len) < 0);
	http1_writer_init(&w, buf, sizeof(buf));
	http1_writer_header(&w, "X", "a");
	CHECK(http1_writer_end(&w, &len) < 0);
}

/* The buffer has one byte too few, for every length. */
static void a_full_buffer_is_an_error(void)
{
	const size_t whole = strlen("HTTP/1.1 200 OK\r\nX: a\r\n\r\n");

	for (size_t size = 0; size <= whole; size++) {
		struct http1_writer w;
		size_t len = 0;

		memset(buf, '#', sizeof(buf));
		http1_writer_init(&w, buf, size);
		http1_writer_status(&w, 200, NULL);
		http1_writer_header(&w, "X", "a");
		CHECK((http1_writer_end(&w, &len) == 0) == (size == whole));
		CHECK(buf[size] == '#');
	}
}

/* What a proxy sends on. */
static void a_copy_has_what_is_not_of_the_connection(void)
{
	static const char in[] =
		"GET / HTTP/1.1\r\nHost:a\r\nConnection: x-a\r\nX-A: 1\r\nX-B:  2 \r\n"
		"Transfer-Encoding: chunked\r\n\r\n";
	static const struct http1_limits limits = { .head = 256, .target = 64 };
	struct http1_header headers[8];
	struct http1_framing f;
	struct http1_error err;
	struct http1_writer w;
	struct http1_head h;
	size_t len = 0;

	http1_head_init(&h, headers, ARRAY_LEN(headers), &limits);
	CHECK(http1_request_parse(&h, in, sizeof(in) - 1, &err) == HTTP1_DONE);
	CHECK(http1_framing_of_request(&h, &f, &err) == HTTP1_DONE);
	http1_writer_init(&w, buf, sizeof(buf) - 1);
	http1_writer_request(&w, "GET", http1_head_text(&h, h.target));
	for (size_t i = 0; i < h.nheaders; i++) {
		if (!http1_head_is_hop_by_hop(&h, i))
			http1_writer_copy(&w, &h, i);
	}
	http1_writer_framing(&w, &f);
	CHECK(http1_writer_end(&w, &len) == 0);
	buf[len] = '\0';
	CHECK_STR(buf, "GET / HTTP/1.1\r\nHost: a\r\nX-B: 2\r\nTransfer-Encoding: chunked\r\n\r\n");
}

int main(void)
{
	RUN(writes_a_request);
	RUN(writes_a_response);
	RUN(a_length_is_written_where_no_body_follows);
	RUN(nothing_can_add_a_line);
	RUN(lengths_come_from_the_framing_only);
	RUN(bad_starts_are_refused);
	RUN(a_full_buffer_is_an_error);
	RUN(a_copy_has_what_is_not_of_the_connection);
	return tap_done();
}
