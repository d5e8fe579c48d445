/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4) of bytes that arrive in pieces. */
#ifndef LODGE_BASE_SHA256_H
#define LODGE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32, SHA256_BLOCK = 64, SHA256_HEX = 2 * SHA256_SIZE + 1 };

struct sha256 {
	uint32_t h[8];
	uint64_t len;
	unsigned char block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t len);
/* The digest of everything added, in lower-case hexadecimal. *s is used up. */
void sha256_end(struct sha256 *s, char ret[SHA256_HEX]);

#endif
