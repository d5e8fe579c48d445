/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and resources of a call, released at its end in reverse order. */
#ifndef LODGE_API_CORE_ARENA_H
#define LODGE_API_CORE_ARENA_H

#include <stddef.h>

enum { ARENA_ROOM = 1024 };

struct api_arena { /* zero-initialized: empty */
	struct arena_item *items;
	size_t used;
	_Alignas(max_align_t) char room[ARENA_ROOM]; /* for small allocations */
};

typedef void arena_fn(void *p);
/* Takes over p. NULL: out of memory, and p was released. */
void *arena_keep(struct api_arena *a, void *p, arena_fn *fn);
void *arena_alloc(struct api_arena *a, size_t size); /* zero-initialized; NULL: out of memory */
char *arena_text(struct api_arena *a, const char *text, size_t len);
void arena_fini(struct api_arena *a);

#endif
