/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 for the WebSocket handshake, which needs no cryptographic strength. */
#include "client/sha1.h"

#include <string.h>

enum { BLOCK = 64, LENGTH_AT = 56 };

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

static uint32_t mix(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
	switch (round / 20) {
	case 0:
		return ((b & c) | (~b & d)) + 0x5a827999;
	case 1:
		return (b ^ c ^ d) + 0x6ed9eba1;
	case 2:
		return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
	default:
		return (b ^ c ^ d) + 0xca62c1d6;
	}
}

static void hash_block(uint32_t h[5], const unsigned char *p)
{
	uint32_t w[80], s[5];

	for (unsigned i = 0; i < 16; i++, p += 4)
		w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	for (unsigned i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	memcpy(s, h, sizeof(s));
	for (unsigned i = 0; i < 80; i++) {
		uint32_t next = rotate(s[0], 5) + mix(i, s[1], s[2], s[3]) + s[4] + w[i];

		s[4] = s[3];
		s[3] = s[2];
		s[2] = rotate(s[1], 30);
		s[1] = s[0];
		s[0] = next;
	}
	for (unsigned i = 0; i < 5; i++)
		h[i] += s[i];
}

void sha1(const void *bytes, size_t len, unsigned char ret[SHA1_SIZE])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	unsigned char last[2 * BLOCK] = { 0 };
	const unsigned char *p = bytes;
	size_t rest = len % BLOCK, end = rest < LENGTH_AT ? BLOCK : 2 * BLOCK;

	for (size_t i = 0; i + BLOCK <= len; i += BLOCK)
		hash_block(h, p + i);
	memcpy(last, p + len - rest, rest);
	last[rest] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		last[end - 1 - i] = (unsigned char)((uint64_t)len * 8 >> 8 * i);
	for (size_t i = 0; i < end; i += BLOCK)
		hash_block(h, last + i);
	for (unsigned i = 0; i < SHA1_SIZE; i++)
		ret[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}
