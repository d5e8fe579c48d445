/* SPDX-License-Identifier: Apache-2.0 */
/* Where a message ends, and what the connection is for afterwards. A message that two parsers could
 * end at different bytes is refused. */
#ifndef LODGE_HTTP1_FRAMING_H
#define LODGE_HTTP1_FRAMING_H

#include "http1/http1_head.h"

enum http1_body {
	HTTP1_BODY_NONE,
	HTTP1_BODY_LENGTH, /* `length` bytes, at least one */
	HTTP1_BODY_CHUNKED, /* see http1_chunked.h */
	HTTP1_BODY_UNTIL_CLOSE, /* only of a response */
	HTTP1_BODY_TUNNEL, /* other bytes in both directions: after 101, or 2xx to CONNECT */
};

struct http1_framing {
	enum http1_body body;
	bool has_length; /* there is a Content-Length, also where no body follows (HEAD, 304) */
	uint64_t length;
	bool keep_alive; /* after the body another message can follow */
	bool expects_continue; /* a request: its body comes after a 100, or after a while */
	/* A request offers another protocol in Upgrade, and has no body. A proxy that forwards the
	 * offer sends nothing after it before the response: node takes it for the other protocol.
	 */
	bool upgrade;
	bool interim; /* a 1xx response but 101: another head follows */
};

/* What a response answers. */
enum http1_answered {
	HTTP1_TO_HEAD = 1,
	HTTP1_TO_CONNECT = 2,
	HTTP1_TO_UPGRADE = 4, /* a request whose framing says `upgrade` */
};

/* HTTP1_DONE, or HTTP1_BAD with 400, 417, 431 or 501. */
enum http1_result http1_framing_of_request(const struct http1_head *h, struct http1_framing *ret,
					   struct http1_error *err);
/* HTTP1_DONE, or HTTP1_BAD with 502. `to` is a set of http1_answered. */
enum http1_result http1_framing_of_response(const struct http1_head *h, unsigned to,
					    struct http1_framing *ret, struct http1_error *err);
/* The set for a request that was parsed. */
unsigned http1_framing_answers(const struct http1_head *request, const struct http1_framing *f);

#endif
