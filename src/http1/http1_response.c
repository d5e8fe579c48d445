/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/http1_response.h"

#include <string.h>

#include "base/array.h"

enum { STATUS_AT = 9, STATUS_LEN = 3 };

/* HTTP/1.1 200 OK. Servers without a reason often leave its space out too. */
static enum http1_result parse_status_line(struct http1_head *h, struct http1_span line,
					   struct http1_error *err)
{
	struct http1_text t = http1_head_text(h, line);
	size_t after = STATUS_AT + STATUS_LEN;

	if (http1_head_parse_version(
		    h, (struct http1_text){ t.s, t.len < STATUS_AT ? t.len : STATUS_AT - 1 },
		    err) != HTTP1_DONE)
		return HTTP1_BAD;
	if (t.len < after || t.s[STATUS_AT - 1] != ' ' || (t.len > after && t.s[after] != ' '))
		return http1_bad(err, 502, "status line: malformed");
	for (size_t i = STATUS_AT; i < after; i++) {
		if (t.s[i] < '0' || t.s[i] > '9')
			return http1_bad(err, 502, "status line: malformed");
		h->status = h->status * 10 + (unsigned)(t.s[i] - '0');
	}
	if (h->status < 100 || h->status > 599)
		return http1_bad(err, 502, "status: must be between 100 and 599");
	if (t.len > after + 1)
		h->reason = (struct http1_span){ line.at + (uint32_t)after + 1,
						 line.len - (uint32_t)after - 1 };
	return HTTP1_DONE;
}

static enum http1_result parse_head(struct http1_head *h, const char *buf, size_t len,
				    struct http1_error *err)
{
	static const char start[] = { 'H', 'T', 'T', 'P', '/' };
	struct http1_span line;
	enum http1_result r;

	h->base = buf;
	if (!h->has_start) {
		/* Another protocol may never send the end of a line. */
		if (len && memcmp(buf, start, len < sizeof(start) ? len : sizeof(start)) != 0)
			return http1_bad(err, 502, "HTTP version: malformed or missing");
		r = http1_head_next_line(h, buf, len, &line, err);
		if (r != HTTP1_DONE)
			return r;
		h->has_start = true;
		if (parse_status_line(h, line, err) != HTTP1_DONE)
			return HTTP1_BAD;
	}
	return http1_head_next_headers(h, buf, len, err);
}

enum http1_result http1_response_parse(struct http1_head *h, const char *buf, size_t len,
				       struct http1_error *err)
{
	enum http1_result r = parse_head(h, buf, len, err);

	if (r == HTTP1_BAD && err->status == 414)
		err->why = "status line: too long";
	if (r == HTTP1_BAD)
		err->status = 502;
	return r;
}

static const struct {
	unsigned status;
	const char *reason;
} reasons[] = {
	{ 100, "Continue" },
	{ 101, "Switching Protocols" },
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 207, "Multi-Status" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 402, "Payment Required" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 421, "Misdirected Request" },
	{ 422, "Unprocessable Content" },
	{ 426, "Upgrade Required" },
	{ 428, "Precondition Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
};

const char *http1_response_reason(unsigned status)
{
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		if (reasons[i].status == status)
			return reasons[i].reason;
	}
	return "";
}
