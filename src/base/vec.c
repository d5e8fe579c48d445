/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 256 };

void *vec_push_bytes(void *items, size_t *count, size_t size, size_t max)
{
	size_t n = *count;
	char *base, *grown;

	memcpy(&base, items, sizeof(base)); /* a pointer of any type */
	if (n >= max) {
		errno = E2BIG;
		return NULL;
	}
	/* The capacity is the next power of two, so the array is full when its count is one. */
	if ((n & (n - 1)) == 0) {
		grown = reallocarray(base, n ? 2 * n : 1, size);
		if (!grown)
			return NULL;
		base = grown;
		memcpy(items, &base, sizeof(base));
	}
	*count = n + 1;
	return memset(base + n * size, 0, size);
}

int vec_reserve(void *bytes, size_t *capacity, size_t need)
{
	size_t size = *capacity ? *capacity : CAPACITY_MIN;
	char *base, *grown;

	if (need <= *capacity)
		return 0;
	while (size < need)
		size = size > SIZE_MAX / 2 ? need : 2 * size;
	memcpy(&base, bytes, sizeof(base));
	grown = realloc(base, size);
	if (!grown)
		return -1;
	memcpy(bytes, &grown, sizeof(grown));
	*capacity = size;
	return 0;
}
