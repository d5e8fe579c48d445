/* SPDX-License-Identifier: Apache-2.0 */
#include "http/proxy_addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/internal.h"
#include "http1/http1_text.h"

enum { BITS_MAX = 128, MAPPED_BITS = 96 };

static const uint8_t mapped[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static bool parse_address(const char *text, uint8_t ret[16], bool *ret_v4)
{
	*ret_v4 = inet_pton(AF_INET, text, ret + sizeof(mapped)) == 1;
	if (!*ret_v4)
		return inet_pton(AF_INET6, text, ret) == 1;
	memcpy(ret, mapped, sizeof(mapped));
	return true;
}

/* ---- networks -------------------------------------------------------------------------------- */

static bool parse_bits(const char *text, unsigned max, unsigned *ret)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	*ret = (unsigned)n;
	return *text >= '0' && *text <= '9' && !*end && n <= max;
}

static bool has_bit(const uint8_t bytes[16], unsigned i)
{
	return bytes[i / 8] & (0x80 >> i % 8);
}

int proxy_net_parse(const char *text, struct proxy_net *ret, struct err *err)
{
	char address[INET6_ADDRSTRLEN] = "";
	const char *slash = strchrnul(text, '/');
	struct proxy_net n = { .bits = BITS_MAX };
	bool v4 = false, ok = (size_t)(slash - text) < sizeof(address);

	if (ok)
		memcpy(address, text, (size_t)(slash - text));
	ok = ok && parse_address(address, n.bytes, &v4);
	if (ok && *slash)
		ok = parse_bits(slash + 1, v4 ? BITS_MAX - MAPPED_BITS : BITS_MAX, &n.bits);
	if (!ok)
		return err_set(err, ERR_INVALID, "\"%.64s\" is not an address or a network", text);
	if (*slash && v4)
		n.bits += MAPPED_BITS;
	for (unsigned i = n.bits; i < BITS_MAX; i++)
		if (has_bit(n.bytes, i))
			return err_set(err, ERR_INVALID, "\"%.64s\" has bits behind its prefix",
				       text);
	*ret = n;
	return 0;
}

static bool contains(const struct proxy_net *n, const uint8_t bytes[16])
{
	for (unsigned i = 0; i < n->bits; i++)
		if (has_bit(n->bytes, i) != has_bit(bytes, i))
			return false;
	return true;
}

bool proxy_net_contains(const struct proxy_net *nets, unsigned n, const uint8_t bytes[16])
{
	for (unsigned i = 0; i < n; i++)
		if (contains(&nets[i], bytes))
			return true;
	return false;
}

/* ---- the header ------------------------------------------------------------------------------ */

/* The last element before `end`, which is moved to its comma. False: it is no address. */
static bool take_last(const char *value, size_t *end, char ret[PEER_MAX], uint8_t bytes[16])
{
	size_t from = *end, len;
	bool ignored;

	while (from && value[from - 1] != ',')
		from--;
	len = *end - from;
	*end = from ? from - 1 : 0;
	value += from;
	while (len && strchr(" \t", *value)) {
		value++;
		len--;
	}
	while (len && strchr(" \t", value[len - 1]))
		len--;
	if (!len || len >= PEER_MAX)
		return false;
	memcpy(ret, value, len);
	ret[len] = '\0';
	return parse_address(ret, bytes, &ignored);
}

/* 1: the client is found, in rq->peer; 0: all are proxies; -1: malformed. */
static int read_header(struct http_request *rq, const char *value)
{
	const struct http_server *s = rq->server;
	size_t end = strlen(value);
	char text[PEER_MAX];
	uint8_t bytes[16];

	do {
		bool first = !memchr(value, ',', end);

		if (!take_last(value, &end, text, bytes))
			return -1;
		memcpy(rq->peer, text, sizeof(text));
		if (!proxy_net_contains(s->proxies, s->nproxies, bytes))
			return 1;
		if (first)
			return 0;
	} while (true);
}

unsigned proxy_addr_take(struct http_request *rq, struct http1_error *err)
{
	int r = 0;

	if (!rq->conn->is_proxy)
		return 0;
	for (size_t i = rq->nheaders; i > 0 && r == 0; i--)
		if (strcasecmp(rq->headers[i - 1].name, "X-Forwarded-For") == 0)
			r = read_header(rq, rq->headers[i - 1].value);
	if (r >= 0)
		return 0;
	*err = (struct http1_error){ 400, "X-Forwarded-For: must be a list of addresses" };
	return err->status;
}
