/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_HTTP1_REQUEST_H
#define LODGE_HTTP1_REQUEST_H

#include "http1/http1_head.h"

/* Parses as much of a request's head as has arrived: `len` bytes at `buf`, from the first byte of
 * the message on. The text of a target is not decoded: percent signs are the caller's. Whether the
 * body is acceptable is decided by http1_framing_of_request(). */
enum http1_result http1_request_parse(struct http1_head *h, const char *buf, size_t len,
				      struct http1_error *err);
/* For callers that set any_host: whether this is host or host:port, with a port from 1 to 65535 if
 * there is one. */
bool http1_request_is_authority(struct http1_text t, bool needs_port);

#endif
