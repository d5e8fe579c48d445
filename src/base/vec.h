/* SPDX-License-Identifier: Apache-2.0 */
/* Growable arrays: a pointer and a count, without a capacity to keep. */
#ifndef LODGE_BASE_VEC_H
#define LODGE_BASE_VEC_H

#include <stddef.h>

/* Appends a zeroed item of `size` bytes to the array that *items points to, and raises *count. The
 * new item, or NULL and nothing changed: without memory (errno ENOMEM), or at `max` items
 * (E2BIG). free() frees the array. Removing items needs only a lower count. */
void *vec_push_bytes(void *items, size_t *count, size_t size, size_t max);

/* The same for an array of a known type: vec_push(&l->items, &l->count, SIZE_MAX). */
#ifndef __cppcheck__ /* which cannot parse it */
#define vec_push(items, count, max)                                                                \
	((__typeof__(*(items)))vec_push_bytes((items), (count), sizeof(**(items)), (max)))
#else
#define vec_push(items, count, max) vec_push_bytes((items), (count), 1, (max))
#endif

/* Grows the buffer that *bytes points to, to at least `need` bytes. 0, or -1 (errno ENOMEM) and
 * nothing changed. */
int vec_reserve(void *bytes, size_t *capacity, size_t need);

#endif
