/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_HTTP1_RESPONSE_H
#define LODGE_HTTP1_RESPONSE_H

#include "http1/http1_head.h"

/* Parses as much of a response's head as has arrived, as http1_request_parse() does. The status of
 * an error is always 502: what a proxy answers instead. */
enum http1_result http1_response_parse(struct http1_head *h, const char *buf, size_t len,
				       struct http1_error *err);
/* The usual words for a status; "" if there are none. */
const char *http1_response_reason(unsigned status);

#endif
