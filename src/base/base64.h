/* SPDX-License-Identifier: Apache-2.0 */
/* Strict base64 (RFC 4648, section 4): with padding, without blanks. Of several texts that could
 * decode to the same bytes, only the canonical one is accepted. */
#ifndef LODGE_BASE_BASE64_H
#define LODGE_BASE_BASE64_H

#include <stddef.h>

/* Maximum size of the result for `len` characters or bytes, without a NUL. */
#define BASE64_DECODED(len) ((len) / 4 * 3)
#define BASE64_ENCODED(len) (((len) + 2) / 3 * 4)

/* Decodes into BASE64_DECODED(len) bytes at `to`. 0, or -EINVAL with `to` undefined. */
int base64_decode(const char *text, size_t len, void *to, size_t *ret_len);
/* Encodes into BASE64_ENCODED(len) characters at `to`, without a NUL. */
void base64_encode(const void *bytes, size_t len, char *to);

#endif
