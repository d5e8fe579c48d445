/* SPDX-License-Identifier: Apache-2.0 */
#include "tap.h"

#include "base/array.h"
#include "http1/http1_response.h"
#include "http1_splits.h"

#define AGREE(like, rows) CHECK(splits_agree(&(like), rows, ARRAY_LEN(rows)))

static struct reader responses(unsigned to)
{
	return (struct reader){ .responses = true,
				.to = to,
				.limits = { .head = 1024, .target = 64 } };
}

static void accepts_what_servers_send(void)
{
	static const struct row rows[] = {
		ROW("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 404\r\n"
		    "Content-Length: 0\r\n\r\n",
		    "response 200 keep [abc]\nresponse 404 keep []\nend\n"),
		ROW("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
		    "HTTP/1.1 200 \r\nContent-Length: 1\r\nConnection: close\r\n\r\na",
		    "interim 100\ninterim 103\nresponse 200 close [a]\nend\n"),
		ROW("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\n0\r\n"
		    "T: 1\r\n\r\nHTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
		    "response 200 keep [abc]\nresponse 204 keep []\nend\n"),
		ROW("HTTP/1.1 200 \xc3\xbc\r\n\r\nabc\r\n",
		    "response 200 close [abc%0d%0a]\nend\n"),
		ROW("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na",
		    "response 200 keep [a]\nend\n"),
		ROW("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
		    "response 200 close [a]\nend\n"),
		ROW("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n",
		    "response 304 keep []\nend\n"),
		ROW("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na", "response 200 keep\nmore\n"),
	};
	struct reader like = responses(0);

	AGREE(like, rows);
}

static void an_answer_to_head_has_no_body(void)
{
	static const struct row rows[] = {
		ROW("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\n"
		    "Transfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		    "response 200 keep []\nresponse 200 keep []\nresponse 200 keep []\nend\n"),
	};
	struct reader like = responses(HTTP1_TO_HEAD);

	AGREE(like, rows);
}

static void a_tunnel_begins_only_if_it_was_asked_for(void)
{
	static const struct row upgrade[] = {
		ROW("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		    "Connection: Upgrade\r\n\r\n\x81\x01",
		    "tunnel\nend\n"),
		ROW("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n",
		    "error 502 status 101 without a valid Upgrade\nend\n"),
		ROW("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "response 200 keep []\nend\n"),
	};
	static const struct row connect[] = {
		ROW("HTTP/1.1 200 OK\r\n\r\nabc", "tunnel\nend\n"),
		ROW("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		    "error 502 a body where the status allows none\nend\n"),
		ROW("HTTP/1.1 403 No\r\nContent-Length: 1\r\n\r\na",
		    "response 403 keep [a]\nend\n"),
	};
	static const struct row neither[] = {
		ROW("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		    "Connection: Upgrade\r\n\r\n",
		    "error 502 status 101 without a valid Upgrade\nend\n"),
	};
	struct reader like = responses(HTTP1_TO_UPGRADE);

	AGREE(like, upgrade);
	like.to = HTTP1_TO_CONNECT;
	AGREE(like, connect);
	like.to = 0;
	AGREE(like, neither);
}

#define NO_LINE "error 502 status line: malformed\nend\n"
#define NO_VERSION "error 502 HTTP version: malformed or missing\nend\n"
#define NO_STATUS "error 502 status: must be between 100 and 599\nend\n"

static void refuses_bad_status_lines(void)
{
	static const struct row rows[] = {
		ROW("\r\n", NO_VERSION),
		ROW("SSH-2.0", NO_VERSION),
		ROW("HTTp\0", NO_VERSION),
		ROW("HTTP/1.1\r\n", NO_LINE),
		ROW("HTTP/1.1 \r\n", NO_LINE),
		ROW("HTTP/1.1 20\r\n", NO_LINE),
		ROW("HTTP/1.1 2000\r\n", NO_LINE),
		ROW("HTTP/1.1 20x OK\r\n", NO_LINE),
		ROW("HTTP/1.1  200 OK\r\n", NO_LINE),
		ROW("HTTP/1.1\t200 OK\r\n", NO_LINE),
		ROW("HTTP/1.1 200\tOK\r\n", NO_LINE),
		ROW("HTTP/1.1 099 OK\r\n", NO_STATUS),
		ROW("HTTP/1.1 600 OK\r\n", NO_STATUS),
		ROW("HTTP/1.11 200 OK\r\n", NO_LINE),
		ROW("ICY 200 OK\r\n", NO_VERSION),
		ROW("HTTP/2.0 200 OK\r\n",
		    "error 502 HTTP version: must be HTTP/1.1 or HTTP/1.0\nend\n"),
		ROW("HTTP/1.1 200 OK\nA: b\n\n",
		    "error 502 a line of the head ends with LF instead of CR LF\nend\n"),
		ROW("HTTP/1.1 200 7890123456789012345678901234567890123456789012345678901234567890"
		    "12345678901234567890123456789012345678901234567890\r\n",
		    "error 502 status line: too long\nend\n"),
	};
	struct reader like = responses(0);

	AGREE(like, rows);
}

static void refuses_ambiguous_responses(void)
{
	static const struct row rows[] = {
		ROW("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
		    "error 502 Content-Length: occurs twice\nend\n"),
		ROW("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		    "error 502 Content-Length and Transfer-Encoding conflict\nend\n"),
		ROW("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		    "error 502 Transfer-Encoding: must be chunked\nend\n"),
		ROW("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		    "error 502 Transfer-Encoding: not possible with HTTP/1.0\nend\n"),
		ROW("HTTP/1.1 204 No\r\nContent-Length: 1\r\n\r\n",
		    "error 502 a body where the status allows none\nend\n"),
		ROW("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n",
		    "error 502 a body where the status allows none\nend\n"),
		ROW("HTTP/1.1 100 Continue\r\nContent-Length: 1\r\n\r\n",
		    "error 502 a body where the status allows none\nend\n"),
	};
	struct reader like = responses(0);

	AGREE(like, rows);
}

static void usual_reasons_are_known(void)
{
	CHECK_STR(http1_response_reason(404), "Not Found");
	CHECK_STR(http1_response_reason(299), "");
}

int main(void)
{
	RUN(accepts_what_servers_send);
	RUN(an_answer_to_head_has_no_body);
	RUN(a_tunnel_begins_only_if_it_was_asked_for);
	RUN(refuses_bad_status_lines);
	RUN(refuses_ambiguous_responses);
	RUN(usual_reasons_are_known);
	return tap_done();
}
