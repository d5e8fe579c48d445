/* SPDX-License-Identifier: Apache-2.0 */
/* What goes with a call: whatever is put here is released when it ends, the latest first. */
#ifndef LODGE_API_CORE_ARENA_H
#define LODGE_API_CORE_ARENA_H

#include <stddef.h>

enum { ARENA_ROOM = 1024 };

struct api_arena { /* of zeros: empty */
	struct arena_item *items;
	size_t used;
	_Alignas(max_align_t) char room[ARENA_ROOM]; /* for what is small and comes first */
};

typedef void arena_fn(void *p);
/* Takes over p. NULL without memory: then it is released already. */
void *arena_keep(struct api_arena *a, void *p, arena_fn *fn);
void *arena_alloc(struct api_arena *a, size_t size); /* zeros; NULL without memory */
char *arena_text(struct api_arena *a, const char *text, size_t len);
void arena_fini(struct api_arena *a);

#endif
