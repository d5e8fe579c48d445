/* SPDX-License-Identifier: Apache-2.0 */
/* The client's address behind reverse proxies. A proxy that is trusted appends the address of its
 * peer to X-Forwarded-For; the header of any other peer is ignored. */
#ifndef LODGE_HTTP_PROXY_ADDR_H
#define LODGE_HTTP_PROXY_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct http1_error;
struct http_request;

enum { PROXY_NETS_MAX = 64 };

struct proxy_net {
	uint8_t bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
	unsigned bits; /* of the prefix */
};
/* "ADDRESS" or "ADDRESS/BITS". ERR_INVALID: neither, or bits behind the prefix are set. */
int proxy_net_parse(const char *text, struct proxy_net *ret, struct err *err);
bool proxy_net_contains(const struct proxy_net *nets, unsigned n, const uint8_t bytes[16]);
/* Replaces the request's peer, if that is a trusted proxy, by the last address of X-Forwarded-For
 * that is none. Returns 0, or the status of a rejection. */
unsigned proxy_addr_take(struct http_request *rq, struct http1_error *err);

#endif
