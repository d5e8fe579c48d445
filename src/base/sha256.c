/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
				   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void expand(uint32_t w[64], const unsigned char *p)
{
	for (int i = 0; i < 16; i++, p += 4)
		w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
		       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

/* Names as in the standard. */
static void add_block(uint32_t sum[8], const unsigned char *p)
{
	uint32_t a = sum[0], b = sum[1], c = sum[2], d = sum[3];
	uint32_t e = sum[4], f = sum[5], g = sum[6], h = sum[7];
	uint32_t w[64];

	expand(w, p);
	for (int i = 0; i < 64; i++) {
		uint32_t t = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
			     ((e & f) ^ (~e & g)) + constants[i] + w[i];
		uint32_t u = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
			     ((a & b) ^ (a & c) ^ (b & c));

		h = g, g = f, f = e, e = d + t;
		d = c, c = b, b = a, a = t + u;
	}
	sum[0] += a, sum[1] += b, sum[2] += c, sum[3] += d;
	sum[4] += e, sum[5] += f, sum[6] += g, sum[7] += h;
}

void sha256_init(struct sha256 *s)
{
	*s = (struct sha256){ 0 };
	memcpy(s->h, first, sizeof(s->h));
}

void sha256_add(struct sha256 *s, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t have = s->len % SHA256_BLOCK;

	s->len += len;
	if (have && have + len >= SHA256_BLOCK) {
		memcpy(s->block + have, p, SHA256_BLOCK - have);
		add_block(s->h, s->block);
		p += SHA256_BLOCK - have;
		len -= SHA256_BLOCK - have;
		have = 0;
	}
	for (; len >= SHA256_BLOCK; p += SHA256_BLOCK, len -= SHA256_BLOCK)
		add_block(s->h, p);
	if (len)
		memcpy(s->block + have, p, len);
}

void sha256_end(struct sha256 *s, char ret[SHA256_HEX])
{
	static const unsigned char pad[SHA256_BLOCK] = { 0x80 };
	size_t have = s->len % SHA256_BLOCK;
	uint64_t bits = s->len * 8;
	unsigned char length[8];

	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(bits >> (56 - 8 * i));
	sha256_add(s, pad, have < 56 ? 56 - have : 120 - have);
	sha256_add(s, length, sizeof(length));
	for (size_t i = 0; i < 8; i++)
		snprintf(ret + 8 * i, 9, "%08x", s->h[i]);
}
