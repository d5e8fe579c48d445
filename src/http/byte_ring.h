/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_HTTP_BYTE_RING_H
#define LODGE_HTTP_BYTE_RING_H

#include <stddef.h>

/* A bounded queue of bytes. */
struct ring {
	char *buf;
	size_t size, start, len;
};
int byte_ring_init(struct ring *r, size_t size);
void byte_ring_fini(struct ring *r);
size_t byte_ring_put(struct ring *r, const void *data, size_t len);
size_t byte_ring_take(struct ring *r, void *buf, size_t size);

#endif
