/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

#include "base/array.h"
#include "http1/http1_chunked.h"
#include "http1_splits.h"

#define AGREE(like, rows) CHECK(splits_agree(&(like), rows, ARRAY_LEN(rows)))
#define POST "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
#define OK(body) ROW(POST body, "request POST / keep [abc]\nend\n")
#define BAD(body, why) ROW(POST body, "request POST / keep\nerror 400 " why "\nend\n")
#define NO_LINE "chunked body: a line must end with CR LF"
#define NO_SIZE "chunk size: must be hexadecimal"
#define NO_EXTENSION "chunk extension: invalid character"
#define NO_TRAILER "a trailer name that is empty or has invalid characters"

static struct reader requests(void)
{
	return (struct reader){ .limits = { .head = 1024, .target = 64 } };
}

static void reads_chunks(void)
{
	static const struct row rows[] = {
		OK("3\r\nabc\r\n0\r\n\r\n"),
		OK("1\r\na\r\n002\r\nbc\r\n000\r\n\r\n"),
		OK("3;x\r\nabc\r\n0;y=\"z ;\xff\"\r\n\r\n"),
		OK("3\r\nabc\r\n0\r\nX: 1\r\nLong-Name-Of-A-Trailer:\t\r\n\r\n"),
		ROW(POST "A\r\n0123\r\n6789\r\n0\r\n\r\nGET",
		    "request POST / keep [0123%0d%0a6789]\nmore\n"),
		ROW(POST "3\r\nabc\r\n0\r\n", "request POST / keep\nmore\n"),
	};
	struct reader like = requests();

	AGREE(like, rows);
}

static void refuses_bad_chunks(void)
{
	static const struct row rows[] = {
		BAD("\r\n", NO_SIZE),
		BAD(" 3\r\nabc\r\n0\r\n\r\n", NO_SIZE),
		BAD("3 \r\nabc\r\n", NO_SIZE),
		BAD("3 ;a\r\nabc\r\n", NO_SIZE),
		BAD("0x3\r\nabc\r\n", NO_SIZE),
		BAD("-3\r\nabc\r\n", NO_SIZE),
		BAD("+3\r\nabc\r\n", NO_SIZE),
		BAD("g\r\n", NO_SIZE),
		BAD(";a\r\n", NO_SIZE),
		BAD("3\nabc\r\n", NO_SIZE),
		BAD("3\r\nabc\n0\r\n\r\n", NO_LINE),
		BAD("3\r\nabcd\r\n0\r\n\r\n", NO_LINE),
		BAD("3\r\nabc\r0\r\n\r\n", NO_LINE),
		BAD("3\rabc\r\n", NO_LINE),
		BAD("3;a\rb\r\nabc\r\n", NO_LINE),
		BAD("3;a\nabc\r\n", NO_EXTENSION),
		BAD("3;a\0\r\nabc\r\n", NO_EXTENSION),
		BAD("3;\r\nabc\r\n", NO_EXTENSION),
		BAD("3; a\r\nabc\r\n", NO_EXTENSION),
		BAD("0000000000000003\r\nabc\r\n", "chunk size: more than 15 digits"),
		BAD("ffffffffffffffff1\r\n", "chunk size: more than 15 digits"),
	};
	struct reader like = requests();

	AGREE(like, rows);
}

static void refuses_bad_trailers(void)
{
	static const struct row rows[] = {
		BAD("0\r\n\n", NO_TRAILER),
		BAD("0\r\nX\r\n\r\n", NO_TRAILER),
		BAD("0\r\n: a\r\n\r\n", NO_TRAILER),
		BAD("0\r\n X: a\r\n\r\n", NO_TRAILER),
		BAD("0\r\nX : a\r\n\r\n", NO_TRAILER),
		BAD("0\r\nX: a\n\r\n", "a control character in a trailer"),
		BAD("0\r\nX: a\rb\r\n", NO_LINE),
		BAD("0\r\n\r\r", NO_LINE),
		BAD("0\r\nContent-Length: 3\r\n\r\n", "a trailer that must not be one"),
		BAD("0\r\nA: b\r\nTRANSFER-ENCODING: chunked\r\n\r\n",
		    "a trailer that must not be one"),
		BAD("0\r\nHost: b\r\n\r\n", "a trailer that must not be one"),
	};
	struct reader like = requests();

	AGREE(like, rows);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static enum http1_result read_text(struct http1_chunked *c, const char *s, size_t len,
				   struct http1_error *err)
{
	size_t used, data;

	return http1_chunked_read(c, s, len, NULL, &used, &data, err);
}

/* One long extension, or short ones in many chunks. */
static void extensions_are_bounded(void)
{
	struct http1_chunked c = { 0 };
	struct http1_error err = { 0 };
	static const char chunk[] = "1;ab\r\nx\r\n";
	enum http1_result r = HTTP1_MORE;
	size_t n = 0;

	CHECK(read_text(&c, "1;", 2, &err) == HTTP1_MORE);
	for (n = 0; n < HTTP1_CHUNK_EXTENSIONS; n++)
		CHECK(read_text(&c, "a", 1, &err) == HTTP1_MORE);
	CHECK(read_text(&c, "a", 1, &err) == HTTP1_BAD && err.status == 400);
	c = (struct http1_chunked){ 0 };
	for (n = 0; r == HTTP1_MORE; n++)
		r = read_text(&c, chunk, sizeof(chunk) - 1, &err);
	CHECK(r == HTTP1_BAD && n == HTTP1_CHUNK_EXTENSIONS / 2 + 1);
	CHECK_STR(err.why, "chunk extensions: larger than 16 KiB");
}

static void trailers_are_bounded(void)
{
	struct http1_chunked c = { 0 };
	struct http1_error err = { 0 };
	enum http1_result r = HTTP1_MORE;
	char kept[8];
	size_t n;

	CHECK(read_text(&c, "0\r\n", 3, &err) == HTTP1_MORE);
	for (n = 0; r == HTTP1_MORE; n++)
		r = read_text(&c, "X: a\r\n", 6, &err);
	CHECK(r == HTTP1_BAD && err.status == 431 && n == HTTP1_TRAILERS / 6 + 1);
	c = (struct http1_chunked){ .trailers = kept, .trailers_size = sizeof(kept) };
	CHECK(read_text(&c, "0\r\nX: a\r\n\r\n", 11, &err) == HTTP1_DONE);
	c = (struct http1_chunked){ .trailers = kept, .trailers_size = sizeof(kept) };
	CHECK(read_text(&c, "0\r\nX: ab\r\n\r\n", 12, &err) == HTTP1_BAD && err.status == 431);
}

static void trailers_can_be_read(void)
{
	static const struct http1_limits limits = { .head = 64 };
	char kept[64];
	struct http1_chunked c = { .trailers = kept, .trailers_size = sizeof(kept) };
	struct http1_header headers[4];
	struct http1_error err;
	struct http1_head h;
	struct http1_text t;

	http1_head_init(&h, headers, ARRAY_LEN(headers), &limits);
	CHECK(read_text(&c, "0\r\nX-Sum: a\r\nY: b\r\n\r\n", 22, &err) == HTTP1_DONE);
	CHECK(http1_head_parse_trailers(&h, kept, c.trailers_len, &err) == HTTP1_DONE);
	CHECK(h.nheaders == 2 && http1_head_find(&h, "x-sum", &t) && http1_text_is(t, "a"));
	http1_head_init(&h, headers, ARRAY_LEN(headers), &limits);
	CHECK(http1_head_parse_trailers(&h, "Host: a\r\n\r\n", 11, &err) == HTTP1_BAD);
}

static void data_can_be_moved_without_reading_it(void)
{
	struct http1_chunked c = { 0 };
	struct http1_error err;
	uint64_t left;

	CHECK(!http1_chunked_in_data(&c, &left) && !left);
	CHECK(read_text(&c, "10\r\na", 5, &err) == HTTP1_MORE);
	CHECK(http1_chunked_in_data(&c, &left) && left == 15);
	http1_chunked_skip(&c, 15);
	CHECK(!http1_chunked_in_data(&c, &left));
	CHECK(read_text(&c, "\r\n0\r\n\r\n", 7, &err) == HTTP1_DONE);
}

static void the_rest_belongs_to_the_next_message(void)
{
	struct http1_chunked c = { 0 };
	struct http1_error err;
	char buf[] = "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET";
	size_t used, data;

	CHECK(http1_chunked_read(&c, buf, sizeof(buf) - 1, buf, &used, &data, &err) == HTTP1_DONE);
	CHECK(data == 5 && !memcmp(buf, "abcde", 5));
	CHECK_STR(buf + used, "GET");
}

static void sizes_are_written_as_they_are_read(void)
{
	static const uint64_t sizes[] = { 1, 15, 16, 0xabcdef, (UINT64_C(1) << 60) - 1 };
	char text[HTTP1_CHUNK_HEAD];
	struct http1_error err;
	uint64_t left;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct http1_chunked c = { 0 };
		size_t len = http1_chunked_head(sizes[i], text);

		CHECK(len <= sizeof(text) && read_text(&c, text, len, &err) == HTTP1_MORE);
		CHECK(http1_chunked_in_data(&c, &left) && left == sizes[i]);
		http1_chunked_skip(&c, left);
		CHECK(read_text(&c, HTTP1_CHUNK_TAIL HTTP1_LAST_CHUNK, 7, &err) == HTTP1_DONE);
	}
}

int main(void)
{
	RUN(reads_chunks);
	RUN(refuses_bad_chunks);
	RUN(refuses_bad_trailers);
	RUN(extensions_are_bounded);
	RUN(trailers_are_bounded);
	RUN(trailers_can_be_read);
	RUN(data_can_be_moved_without_reading_it);
	RUN(the_rest_belongs_to_the_next_message);
	RUN(sizes_are_written_as_they_are_read);
	return tap_done();
}
