/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 as RFC 4648 has it in its section 4, and nothing near it: with padding, without blanks,
 * and of all texts that could mean the same bytes only the one an encoder makes. */
#ifndef LODGE_BASE_BASE64_H
#define LODGE_BASE_BASE64_H

#include <stddef.h>

/* Room that decoding `len` characters, or encoding `len` bytes, takes at most (no NUL). */
#define BASE64_DECODED(len) ((len) / 4 * 3)
#define BASE64_ENCODED(len) (((len) + 2) / 3 * 4)

/* Into BASE64_DECODED(len) bytes at `to`. 0, or -EINVAL with `to` in any state. */
int base64_decode(const char *text, size_t len, void *to, size_t *ret_len);
/* Into BASE64_ENCODED(len) characters at `to`; no NUL behind them. */
void base64_encode(const void *bytes, size_t len, char *to);

#endif
