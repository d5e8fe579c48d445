/* SPDX-License-Identifier: Apache-2.0 */
/* Names of headers that a program asks for often have a number, so that it need not search. */
#ifndef LODGE_HTTP1_NAME_H
#define LODGE_HTTP1_NAME_H

#include "http1/http1_text.h"

/* By length; at most 64, for masks. */
#define HTTP1_NAMES(X)                                                                             \
	X(TE, "te")                                                                                \
	X(DATE, "date")                                                                            \
	X(HOST, "host")                                                                            \
	X(RANGE, "range")                                                                          \
	X(ACCEPT, "accept")                                                                        \
	X(COOKIE, "cookie")                                                                        \
	X(EXPECT, "expect")                                                                        \
	X(ORIGIN, "origin")                                                                        \
	X(TRAILER, "trailer")                                                                      \
	X(UPGRADE, "upgrade")                                                                      \
	X(IF_MATCH, "if-match")                                                                    \
	X(IF_RANGE, "if-range")                                                                    \
	X(LOCATION, "location")                                                                    \
	X(X_API_KEY, "x-api-key")                                                                  \
	X(CONNECTION, "connection")                                                                \
	X(KEEP_ALIVE, "keep-alive")                                                                \
	X(SET_COOKIE, "set-cookie")                                                                \
	X(USER_AGENT, "user-agent")                                                                \
	X(RETRY_AFTER, "retry-after")                                                              \
	X(CONTENT_TYPE, "content-type")                                                            \
	X(X_REQUEST_ID, "x-request-id")                                                            \
	X(AUTHORIZATION, "authorization")                                                          \
	X(CACHE_CONTROL, "cache-control")                                                          \
	X(IF_NONE_MATCH, "if-none-match")                                                          \
	X(LAST_EVENT_ID, "last-event-id")                                                          \
	X(CONTENT_LENGTH, "content-length")                                                        \
	X(SEC_FETCH_MODE, "sec-fetch-mode")                                                        \
	X(SEC_FETCH_SITE, "sec-fetch-site")                                                        \
	X(ACCEPT_ENCODING, "accept-encoding")                                                      \
	X(X_FORWARDED_FOR, "x-forwarded-for")                                                      \
	X(CONTENT_ENCODING, "content-encoding")                                                    \
	X(PROXY_CONNECTION, "proxy-connection")                                                    \
	X(X_FORWARDED_HOST, "x-forwarded-host")                                                    \
	X(SEC_WEBSOCKET_KEY, "sec-websocket-key")                                                  \
	X(TRANSFER_ENCODING, "transfer-encoding")                                                  \
	X(X_FORWARDED_PROTO, "x-forwarded-proto")                                                  \
	X(PROXY_AUTHENTICATE, "proxy-authenticate")                                                \
	X(PROXY_AUTHORIZATION, "proxy-authorization")                                              \
	X(SEC_WEBSOCKET_ACCEPT, "sec-websocket-accept")                                            \
	X(SEC_WEBSOCKET_VERSION, "sec-websocket-version")                                          \
	X(SEC_WEBSOCKET_PROTOCOL, "sec-websocket-protocol")

enum http1_name {
	HTTP1_OTHER, /* any other name */
#define HTTP1_NAME_ENUM(name, text) HTTP1_##name,
	HTTP1_NAMES(HTTP1_NAME_ENUM)
#undef HTTP1_NAME_ENUM
		HTTP1_NAME_COUNT,
};
_Static_assert(HTTP1_NAME_COUNT <= 64, "a mask has a bit for each");

#define HTTP1_BIT(name) (UINT64_C(1) << (name))

enum http1_name http1_name_find(struct http1_text t);

/* A second one would change where a message ends or what it is for: never in trailers, never named
 * by Connection. */
static inline bool http1_name_is_framing(enum http1_name name)
{
	return HTTP1_BIT(name) & (HTTP1_BIT(HTTP1_HOST) | HTTP1_BIT(HTTP1_CONTENT_LENGTH) |
				  HTTP1_BIT(HTTP1_TRANSFER_ENCODING));
}

#endif
