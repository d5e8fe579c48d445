/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

#include "base/array.h"
#include "http1/http1_request.h"
#include "http1_splits.h"

#define OK "GET / HTTP/1.1\r\nHost: a\r\n"
#define AGREE(like, rows) CHECK(splits_agree(&(like), rows, ARRAY_LEN(rows)))

static struct reader requests(void)
{
	return (struct reader){ .limits = { .head = 1024, .target = 256 } };
}

static void accepts_what_clients_send(void)
{
	static const struct row rows[] = {
		ROW(OK "\r\n", "request GET / keep []\nend\n"),
		ROW("GET /a?b=%20|{}\"\xc3\xbc HTTP/1.0\r\n\r\n",
		    "request GET /a?b=%2520|{}\"%c3%bc close []\nend\n"),
		ROW("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n" OK "\r\n",
		    "request GET / keep []\nrequest GET / keep []\nend\n"),
		ROW("PO-ST / HTTP/1.1\r\nhOsT:[::1]:80\t \r\ncontent-LENGTH: 003\r\n\r\nabc" OK
		    "\r\n",
		    "request PO-ST / keep [abc]\nrequest GET / keep []\nend\n"),
		ROW(OK "Connection: x, ClOsE\r\nContent-Length: 1\r\n\r\nab",
		    "request GET / close [a]\nend\n"),
		ROW(OK "X:\r\nY: \xff\t!\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
		    "request GET / keep [a]\nend\n"),
		ROW(OK "Content-Length: 2\r\n\r\na", "request GET / keep\nmore\n"),
		ROW(OK "Content-Le", "more\n"),
		ROW("", "end\n"),
	};
	struct reader like = requests();

	AGREE(like, rows);
}

static void refuses_bad_request_lines(void)
{
	static const struct row rows[] = {
		ROW("\r\n" OK "\r\n", "error 400 request line: no valid method\nend\n"),
		ROW(" " OK, "error 400 request line: no valid method\nend\n"),
		ROW("GE(T / HTTP/1.1\r\n", "error 400 request line: no valid method\nend\n"),
		ROW("GET\t/ HTTP/1.1\r\n", "error 400 request line: no valid method\nend\n"),
		ROW("GET /\r\n", "error 400 request line: no HTTP version\nend\n"),
		ROW("GET  / HTTP/1.1\r\n",
		    "error 400 request target: empty or has invalid characters\nend\n"),
		ROW("GET / a HTTP/1.1\r\n",
		    "error 400 request target: empty or has invalid characters\nend\n"),
		ROW("GET /#a HTTP/1.1\r\n",
		    "error 400 request target: empty or has invalid characters\nend\n"),
		ROW("GET / HTTP/1.1 \r\n", "error 400 HTTP version: malformed or missing\nend\n"),
		ROW("GET / http/1.1\r\n", "error 400 HTTP version: malformed or missing\nend\n"),
		ROW("GET / HTTP/1.10\r\n", "error 400 HTTP version: malformed or missing\nend\n"),
		ROW("GET / HTTP/1.2\r\n",
		    "error 505 HTTP version: must be HTTP/1.1 or HTTP/1.0\nend\n"),
		ROW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		    "error 505 HTTP version: must be HTTP/1.1 or HTTP/1.0\nend\n"),
		ROW("\x16\x03\x01", "error 400 a control character in the head\nend\n"),
		ROW("GET / HTTP/1.1\nHost: a\n\n",
		    "error 400 a line of the head ends with LF instead of CR LF\nend\n"),
		ROW("GET / HTTP/1.1\rHost: a\r\n", "error 400 a CR without LF in the head\nend\n"),
		ROW("GET /\x7f HTTP/1.1\r\n", "error 400 a control character in the head\nend\n"),
		ROW("GET a HTTP/1.1\r\n", "error 400 request target: must be a path\nend\n"),
		ROW("OPTIONS * HTTP/1.1\r\n", "error 400 request target: must be a path\nend\n"),
		ROW("GET http://a/ HTTP/1.1\r\n",
		    "error 400 request target: must be a path\nend\n"),
		ROW("CONNECT a:1 HTTP/1.1\r\n", "error 400 request target: must be a path\nend\n"),
	};
	struct reader like = requests();

	AGREE(like, rows);
}

static void refuses_bad_headers(void)
{
	static const struct row rows[] = {
		ROW(OK " X: a\r\n", "error 400 a folded header line\nend\n"),
		ROW(OK "\tX: a\r\n", "error 400 a folded header line\nend\n"),
		ROW(OK "X\r\n", "error 400 a header line without a colon\nend\n"),
		ROW(OK ": a\r\n",
		    "error 400 a header name that is empty or has invalid characters\nend\n"),
		ROW(OK "X : a\r\n",
		    "error 400 a header name that is empty or has invalid characters\nend\n"),
		ROW(OK "\xc3\xbc: a\r\n",
		    "error 400 a header name that is empty or has invalid characters\nend\n"),
		ROW(OK "X: a\0b\r\n", "error 400 a control character in the head\nend\n"),
		ROW(OK "X: a\x0b\r\n", "error 400 a control character in the head\nend\n"),
		ROW(OK "X: a\x7f\r\n", "error 400 a control character in the head\nend\n"),
		ROW(OK "X: a\rb\r\n", "error 400 a CR without LF in the head\nend\n"),
		ROW(OK "X: a\r\r\n", "error 400 a CR without LF in the head\nend\n"),
		ROW(OK "X: a\n\r\n",
		    "error 400 a line of the head ends with LF instead of CR LF\nend\n"),
		ROW(OK "\n", "error 400 a line of the head ends with LF instead of CR LF\nend\n"),
	};
	struct reader like = requests();

	AGREE(like, rows);
}

#define NO_HOST "error 400 Host: must be a name or address, with or without port\nend\n"

static void refuses_bad_hosts(void)
{
	static const struct row rows[] = {
		ROW("GET / HTTP/1.1\r\n\r\n", "error 400 Host: missing\nend\n"),
		ROW(OK "Host: a\r\n\r\n", "error 400 Host: occurs twice\nend\n"),
		ROW("GET / HTTP/1.0\r\nHost: a\r\nHOST: b\r\n\r\n",
		    "error 400 Host: occurs twice\nend\n"),
		ROW("GET / HTTP/1.1\r\nHost:\r\n\r\n", NO_HOST),
		ROW("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", NO_HOST),
		ROW("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", NO_HOST),
		ROW("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", NO_HOST),
		ROW("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", NO_HOST),
		ROW("GET / HTTP/1.1\r\nHost: a:\r\n\r\n", NO_HOST),
		ROW("GET / HTTP/1.1\r\nHost: a:0\r\n\r\n", NO_HOST),
		ROW("GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", NO_HOST),
		ROW("GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n", NO_HOST),
		ROW("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", NO_HOST),
		ROW("GET / HTTP/1.1\r\nHost: []\r\n\r\n", NO_HOST),
		ROW("GET / HTTP/1.1\r\nHost: [::g]\r\n\r\n", NO_HOST),
	};
	struct reader like = requests();

	AGREE(like, rows);
}

static void the_value_of_host_can_be_left_to_the_caller(void)
{
	static const struct row rows[] = {
		ROW("GET / HTTP/1.1\r\nHost:\r\n\r\n", "request GET / keep []\nend\n"),
		ROW("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", "request GET / keep []\nend\n"),
		ROW("GET / HTTP/1.1\r\n\r\n", "error 400 Host: missing\nend\n"),
		ROW(OK "Host: a\r\n\r\n", "error 400 Host: occurs twice\nend\n"),
	};
	struct reader like = requests();

	like.limits.any_host = true;
	AGREE(like, rows);
}

static void refuses_ambiguous_lengths(void)
{
	static const struct row rows[] = {
		ROW(OK "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
		    "error 400 Content-Length: occurs twice\nend\n"),
		ROW(OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		    "error 400 Content-Length and Transfer-Encoding conflict\nend\n"),
		ROW(OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		    "error 400 Transfer-Encoding: occurs twice\nend\n"),
		ROW(OK "Transfer-Encoding: gzip, chunked\r\n\r\n",
		    "error 501 Transfer-Encoding: must be chunked\nend\n"),
		ROW(OK "Transfer-Encoding: chunked;a\r\n\r\n",
		    "error 501 Transfer-Encoding: must be chunked\nend\n"),
		ROW(OK "Transfer-Encoding:\r\n\r\n",
		    "error 501 Transfer-Encoding: must be chunked\nend\n"),
		ROW("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
		    "error 400 Transfer-Encoding: not possible with HTTP/1.0\nend\n"),
		ROW(OK "Content-Length: +1\r\n\r\n",
		    "error 400 Content-Length: must be a number of 1 to 18 digits\nend\n"),
		ROW(OK "Content-Length: 1,1\r\n\r\n",
		    "error 400 Content-Length: must be a number of 1 to 18 digits\nend\n"),
		ROW(OK "Content-Length:\r\n\r\n",
		    "error 400 Content-Length: must be a number of 1 to 18 digits\nend\n"),
		ROW(OK "Content-Length: 1000000000000000000\r\n\r\n",
		    "error 400 Content-Length: must be a number of 1 to 18 digits\nend\n"),
		ROW(OK "Connection: content-length\r\nContent-Length: 1\r\n\r\n",
		    "error 400 Connection: invalid option\nend\n"),
		ROW(OK "Connection: a b\r\n\r\n", "error 400 Connection: invalid option\nend\n"),
		ROW(OK "Expect: 200-ok\r\n\r\n", "error 417 Expect: must be 100-continue\nend\n"),
		ROW("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: 1\r\n\r\n",
		    "error 400 CONNECT: must not have a body\nend\n"),
	};
	struct reader like = requests();

	like.limits.forms = HTTP1_FORM_AUTHORITY;
	AGREE(like, rows);
}

static void other_targets_are_accepted_if_allowed(void)
{
	static const struct row rows[] = {
		ROW("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "request OPTIONS * keep []\nend\n"),
		ROW("GET * HTTP/1.1\r\n", "error 400 request target: malformed\nend\n"),
		ROW("GET HTTP://A:8?b HTTP/1.1\r\nHost: a:8\r\n\r\n",
		    "request GET HTTP://A:8?b keep []\nend\n"),
		ROW("GET https://a HTTP/1.0\r\n\r\n", "request GET https://a close []\nend\n"),
		ROW("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
		    "error 400 Host: differs from the request target\nend\n"),
		ROW("GET http://a@b/ HTTP/1.1\r\n", "error 400 request target: malformed\nend\n"),
		ROW("GET http:/// HTTP/1.1\r\n", "error 400 request target: malformed\nend\n"),
		ROW("GET ftp://a/ HTTP/1.1\r\n", "error 400 request target: malformed\nend\n"),
		ROW("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n\x16\x03", "tunnel\nend\n"),
		ROW("CONNECT a HTTP/1.1\r\n", "error 400 request target: malformed\nend\n"),
		ROW("CONNECT /a HTTP/1.1\r\n", "error 400 request target: malformed\nend\n"),
	};
	struct reader like = requests();

	like.limits.forms = HTTP1_FORM_ABSOLUTE | HTTP1_FORM_AUTHORITY | HTTP1_FORM_ASTERISK;
	AGREE(like, rows);
}

static void limits_are_exact(void)
{
	static const struct row rows[] = {
		ROW("GET /234567 HTTP/1.1\r\nHost: a\r\n\r\n",
		    "request GET /234567 keep []\nend\n"),
		ROW("GET /2345678 HTTP/1.1\r\n", "error 414 request target: too long\nend\n"),
		ROW("GET /2345678901234567890123456789012345678901234567890123456789",
		    "error 414 request target: too long\nend\n"),
		/* 96 bytes, and one more */
		ROW("GET / HTTP/1.1\r\nHost: a\r\nX: "
		    "345678901234567890123456789012345678901234567890"
		    "1234567890123456\r\n\r\n",
		    "request GET / keep []\nend\n"),
		ROW("GET / HTTP/1.1\r\nHost: a\r\nX: "
		    "345678901234567890123456789012345678901234567890"
		    "12345678901234567\r\n\r\n",
		    "error 431 headers: too large\nend\n"),
	};
	struct reader like = requests();

	like.limits = (struct http1_limits){ .head = 96, .target = 7 };
	CHECK(rows[3].len == 96);
	AGREE(like, rows);
}

/* ---- the parsed head ------------------------------------------------------------------------- */

static struct http1_header array[4];
static const struct http1_limits limits = { .head = 4096, .target = 256 };

static bool parse(struct http1_head *h, const char *text, struct http1_error *err)
{
	http1_head_init(h, array, ARRAY_LEN(array), &limits);
	return http1_request_parse(h, text, strlen(text), err) == HTTP1_DONE;
}

static void the_array_bounds_the_headers(void)
{
	struct http1_error err;
	struct http1_head h;

	CHECK(parse(&h, OK "B: 1\r\nC: 2\r\nD: 3\r\n\r\n", &err) && h.nheaders == 4);
	CHECK(!parse(&h, OK "B: 1\r\nC: 2\r\nD: 3\r\nE: 4\r\n\r\n", &err));
	CHECK(err.status == 431);
	CHECK_STR(err.why, "headers: too many");
}

static void headers_are_found_by_number_and_by_name(void)
{
	static const char text[] = OK "Cookie: a\r\nX-Y:  b \r\ncookie: c\r\n\r\nbody";
	struct http1_error err;
	struct http1_text t;
	struct http1_head h;

	CHECK(parse(&h, text, &err) && h.len == sizeof(text) - 1 - 4);
	CHECK(http1_head_get(&h, HTTP1_COOKIE, &t) && http1_text_is(t, "a"));
	CHECK(h.repeated == HTTP1_BIT(HTTP1_COOKIE));
	CHECK(!http1_head_get(&h, HTTP1_ORIGIN, &t));
	CHECK(http1_head_find(&h, "x-y", &t) && http1_text_is(t, "b"));
	CHECK(http1_head_find(&h, "host", &t) && http1_text_is(t, "a"));
	CHECK(!http1_head_find(&h, "x-yz", &t));
}

static void every_known_name_has_its_number(void)
{
	static const char *const names[] = {
#define NAME(name, text) [HTTP1_##name] = text,
		HTTP1_NAMES(NAME)
#undef NAME
	};

	for (unsigned i = 1; i < HTTP1_NAME_COUNT; i++)
		CHECK(http1_name_find((struct http1_text){ names[i], strlen(names[i]) }) == i);
	CHECK(http1_name_find((struct http1_text){ "Hos", 3 }) == HTTP1_OTHER);
	CHECK(http1_name_find((struct http1_text){ "", 0 }) == HTTP1_OTHER);
}

static void hop_by_hop_headers_are_marked(void)
{
	struct http1_error err;
	struct http1_head h;

	CHECK(parse(&h, OK "X-A: 1\r\nConnection: keep-alive,x-a\r\nX-B: 1\r\n\r\n", &err));
	CHECK(!http1_head_is_hop_by_hop(&h, 0) && http1_head_is_hop_by_hop(&h, 1));
	CHECK(http1_head_is_hop_by_hop(&h, 2) && !http1_head_is_hop_by_hop(&h, 3));
	CHECK(parse(&h, OK "Upgrade: a\r\nTransfer-Encoding: chunked\r\nTE: a\r\n\r\n", &err));
	for (size_t i = 1; i < 4; i++)
		CHECK(http1_head_is_hop_by_hop(&h, i));
	CHECK(http1_head_has_option(&h, "x-a") == false);
}

static void options_of_a_connection_are_bounded(void)
{
	char text[1200];
	struct http1_framing f;
	struct http1_error err;
	struct http1_head h;

	for (int len = 510; len <= 511; len++) {
		snprintf(text, sizeof(text), OK "Connection: a\r\nConnection: b%0*d\r\n\r\n", len,
			 0);
		CHECK(parse(&h, text, &err));
		CHECK((http1_framing_of_request(&h, &f, &err) == HTTP1_DONE) == (len == 510));
	}
	CHECK(err.status == 431);
}

static void an_upgrade_needs_both_headers_and_no_body(void)
{
	static const struct {
		const char *text;
		bool upgrade;
	} rows[] = {
		{ OK "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\r\n", true },
		{ OK "Upgrade: websocket\r\n\r\n", false },
		{ OK "Connection: upgrade\r\n\r\n", false },
		{ OK "Upgrade: websocket\r\nConnection: upgrade\r\nContent-Length: 1\r\n\r\n",
		  false },
		{ "GET / HTTP/1.0\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", false },
	};
	struct http1_framing f;
	struct http1_error err;
	struct http1_head h;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK(parse(&h, rows[i].text, &err));
		CHECK(http1_framing_of_request(&h, &f, &err) == HTTP1_DONE);
		CHECK(f.upgrade == rows[i].upgrade);
		CHECK(http1_framing_answers(&h, &f) == (f.upgrade ? HTTP1_TO_UPGRADE : 0));
	}
}

static void a_client_that_waits_for_100_has_a_body(void)
{
	struct http1_framing f;
	struct http1_error err;
	struct http1_head h;

	CHECK(parse(&h, OK "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n", &err));
	CHECK(http1_framing_of_request(&h, &f, &err) == HTTP1_DONE && f.expects_continue);
	CHECK(parse(&h, OK "Expect: 100-continue\r\n\r\n", &err));
	CHECK(http1_framing_of_request(&h, &f, &err) == HTTP1_DONE && !f.expects_continue);
	CHECK(parse(&h, "GET / HTTP/1.0\r\nExpect: x\r\nContent-Length: 1\r\n\r\n", &err));
	CHECK(http1_framing_of_request(&h, &f, &err) == HTTP1_DONE && !f.expects_continue);
}

static void parts_of_a_target_are_found(void)
{
	static const struct http1_limits all = { .head = 99, .target = 99, .forms = 7 };
	static const char text[] = "GET http://a:1/b?c HTTP/1.0\r\n\r\n";
	struct http1_error err;
	struct http1_head h;

	http1_head_init(&h, array, ARRAY_LEN(array), &all);
	CHECK(http1_request_parse(&h, text, sizeof(text) - 1, &err) == HTTP1_DONE);
	CHECK(h.form == HTTP1_FORM_ABSOLUTE);
	CHECK(http1_text_is(http1_head_text(&h, h.authority), "a:1"));
	CHECK(http1_text_is(http1_head_text(&h, h.path), "/b?c"));
	CHECK(parse(&h, OK "\r\n", &err) && h.form == HTTP1_FORM_ORIGIN);
	CHECK(http1_text_is(http1_head_text(&h, h.authority), "a"));
}

/* Words of eight bytes and single ones find the same. */
static void every_control_character_is_found_at_every_place(void)
{
	char text[40];

	for (int c = 0; c < 256; c++) {
		bool ok = c == '\t' || (c >= ' ' && c != 0x7f);

		for (size_t at = 0; at < sizeof(text); at++) {
			memset(text, c & 0x80 ? 'a' : 0xff, sizeof(text));
			text[at] = (char)c;
			CHECK(http1_text_scan(text, 0, sizeof(text)) == (ok ? sizeof(text) : at));
			CHECK(http1_text_scan(text, at, sizeof(text)) == (ok ? sizeof(text) : at));
		}
	}
}

int main(void)
{
	RUN(accepts_what_clients_send);
	RUN(refuses_bad_request_lines);
	RUN(refuses_bad_headers);
	RUN(refuses_bad_hosts);
	RUN(the_value_of_host_can_be_left_to_the_caller);
	RUN(refuses_ambiguous_lengths);
	RUN(other_targets_are_accepted_if_allowed);
	RUN(limits_are_exact);
	RUN(the_array_bounds_the_headers);
	RUN(headers_are_found_by_number_and_by_name);
	RUN(every_known_name_has_its_number);
	RUN(hop_by_hop_headers_are_marked);
	RUN(options_of_a_connection_are_bounded);
	RUN(an_upgrade_needs_both_headers_and_no_body);
	RUN(a_client_that_waits_for_100_has_a_body);
	RUN(parts_of_a_target_are_found);
	RUN(every_control_character_is_found_at_every_place);
	return tap_done();
}
