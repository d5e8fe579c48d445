/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <errno.h>
#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int value_of(unsigned char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes four characters, `n` of them significant, into n - 1 bytes. */
static int decode_group(const char *text, size_t n, unsigned char *to)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < 4; i++) {
		int v = i < n ? value_of((unsigned char)text[i]) : 0;

		if (v < 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)v;
	}
	/* Unused bits must be zero, or two texts would decode to the same bytes. */
	if ((n == 3 && (bits & 0xff)) || (n == 2 && (bits & 0xffff)))
		return -EINVAL;
	for (size_t i = 0; i + 1 < n; i++)
		to[i] = (unsigned char)(bits >> (16 - 8 * i));
	return 0;
}

int base64_decode(const char *text, size_t len, void *to, size_t *ret_len)
{
	unsigned char *out = to;
	size_t done = 0;

	if (len % 4)
		return -EINVAL;
	for (size_t i = 0; i < len; i += 4) {
		size_t n = 4;

		if (i + 4 == len && text[i + 3] == '=')
			n = text[i + 2] == '=' ? 2 : 3;
		if (decode_group(text + i, n, out + done) < 0)
			return -EINVAL;
		done += n - 1;
	}
	*ret_len = done;
	return 0;
}

void base64_encode(const void *bytes, size_t len, char *to)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < len; i += 3, to += 4) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t bits = (uint32_t)p[i] << 16;

		if (n > 1)
			bits |= (uint32_t)p[i + 1] << 8;
		if (n > 2)
			bits |= p[i + 2];
		for (size_t k = 0; k < 4; k++)
			to[k] = '=';
		for (size_t k = 0; k <= n; k++)
			to[k] = alphabet[bits >> (18 - 6 * k) & 63];
	}
}
