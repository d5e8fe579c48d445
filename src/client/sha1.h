/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_CLIENT_SHA1_H
#define LODGE_CLIENT_SHA1_H

#include <stddef.h>
#include <stdint.h>

enum { SHA1_SIZE = 20 };

void sha1(const void *bytes, size_t len, unsigned char ret[SHA1_SIZE]);

#endif
