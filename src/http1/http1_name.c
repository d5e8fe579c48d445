/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/http1_name.h"

#include "base/array.h"

static const char *const names[HTTP1_NAME_COUNT] = {
#define NAME(name, text) [HTTP1_##name] = text,
	HTTP1_NAMES(NAME)
#undef NAME
};

/* The names of each length. */
static const struct {
	uint8_t first, last;
} by_length[] = {
	[2] = { HTTP1_TE, HTTP1_TE },
	[4] = { HTTP1_DATE, HTTP1_HOST },
	[5] = { HTTP1_RANGE, HTTP1_RANGE },
	[6] = { HTTP1_ACCEPT, HTTP1_ORIGIN },
	[7] = { HTTP1_TRAILER, HTTP1_UPGRADE },
	[8] = { HTTP1_IF_MATCH, HTTP1_LOCATION },
	[9] = { HTTP1_X_API_KEY, HTTP1_X_API_KEY },
	[10] = { HTTP1_CONNECTION, HTTP1_USER_AGENT },
	[11] = { HTTP1_RETRY_AFTER, HTTP1_RETRY_AFTER },
	[12] = { HTTP1_CONTENT_TYPE, HTTP1_X_REQUEST_ID },
	[13] = { HTTP1_AUTHORIZATION, HTTP1_LAST_EVENT_ID },
	[14] = { HTTP1_CONTENT_LENGTH, HTTP1_SEC_FETCH_SITE },
	[15] = { HTTP1_ACCEPT_ENCODING, HTTP1_X_FORWARDED_FOR },
	[16] = { HTTP1_CONTENT_ENCODING, HTTP1_X_FORWARDED_HOST },
	[17] = { HTTP1_SEC_WEBSOCKET_KEY, HTTP1_X_FORWARDED_PROTO },
	[18] = { HTTP1_PROXY_AUTHENTICATE, HTTP1_PROXY_AUTHENTICATE },
	[19] = { HTTP1_PROXY_AUTHORIZATION, HTTP1_PROXY_AUTHORIZATION },
	[20] = { HTTP1_SEC_WEBSOCKET_ACCEPT, HTTP1_SEC_WEBSOCKET_ACCEPT },
	[21] = { HTTP1_SEC_WEBSOCKET_VERSION, HTTP1_SEC_WEBSOCKET_VERSION },
	[22] = { HTTP1_SEC_WEBSOCKET_PROTOCOL, HTTP1_SEC_WEBSOCKET_PROTOCOL },
};

enum http1_name http1_name_find(struct http1_text t)
{
	if (t.len >= ARRAY_LEN(by_length) || !by_length[t.len].first)
		return HTTP1_OTHER;
	for (unsigned i = by_length[t.len].first; i <= by_length[t.len].last; i++) {
		if ((t.s[0] | 0x20) == names[i][0] && http1_text_is(t, names[i]))
			return (enum http1_name)i;
	}
	return HTTP1_OTHER;
}
