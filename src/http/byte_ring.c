/* SPDX-License-Identifier: Apache-2.0 */

#include "http/byte_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int byte_ring_init(struct ring *r, size_t size)
{
	char *buf = malloc(size);

	if (!buf)
		return -ENOMEM;
	*r = (struct ring){ .buf = buf, .size = size };
	return 0;
}

void byte_ring_fini(struct ring *r)
{
	free(r->buf);
	*r = (struct ring){ 0 };
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t byte_ring_put(struct ring *r, const void *data, size_t len)
{
	size_t n = min_size(len, r->size - r->len), end, first;

	if (!n)
		return 0;
	end = (r->start + r->len) % r->size;
	first = min_size(n, r->size - end);
	memcpy(r->buf + end, data, first);
	memcpy(r->buf, (const char *)data + first, n - first);
	r->len += n;
	return n;
}

size_t byte_ring_take(struct ring *r, void *buf, size_t size)
{
	size_t n = min_size(size, r->len), first;

	if (!n)
		return 0;
	first = min_size(n, r->size - r->start);
	memcpy(buf, r->buf + r->start, first);
	memcpy((char *)buf + first, r->buf, n - first);
	r->start = (r->start + n) % r->size;
	r->len -= n;
	return n;
}
