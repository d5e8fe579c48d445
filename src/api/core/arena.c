/* SPDX-License-Identifier: Apache-2.0 */
#include "api/core/arena.h"

#include <stdlib.h>
#include <string.h>

struct arena_item {
	struct arena_item *next;
	void *p;
	arena_fn *fn;
};

void *arena_keep(struct api_arena *a, void *p, arena_fn *fn)
{
	struct arena_item *i = p ? malloc(sizeof(*i)) : NULL;

	if (!i) {
		if (p)
			fn(p);
		return NULL;
	}
	*i = (struct arena_item){ .next = a->items, .p = p, .fn = fn };
	a->items = i;
	return p;
}

/* With sanitizers each piece is a separate allocation, so overruns are detected. */
#ifdef __SANITIZE_ADDRESS__
static void *take_inline(struct api_arena *a, size_t size)
{
	(void)a, (void)size;
	return NULL;
}
#else
static void *take_inline(struct api_arena *a, size_t size)
{
	size_t step = _Alignof(max_align_t), left = sizeof(a->room) - a->used;
	void *p = a->room + a->used;

	if (size > left)
		return NULL;
	size = (size + step - 1) / step * step;
	a->used += size < left ? size : left;
	return p;
}
#endif

void *arena_alloc(struct api_arena *a, size_t size)
{
	void *p = take_inline(a, size);

	return p ? p : arena_keep(a, calloc(1, size ? size : 1), free);
}

char *arena_text(struct api_arena *a, const char *text, size_t len)
{
	char *copy = arena_alloc(a, len + 1);

	if (copy && len)
		memcpy(copy, text, len);
	return copy;
}

void arena_fini(struct api_arena *a)
{
	while (a->items) {
		struct arena_item *i = a->items;

		a->items = i->next;
		i->fn(i->p);
		free(i);
	}
}
