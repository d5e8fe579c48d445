/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/layer_links.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct layer_link {
	uint64_t dev, ino;
	uint32_t layer;
	uint32_t path; /* offset in paths, plus 1; 0: empty slot */
};

_Static_assert(LAYER_LINKS_BYTES < UINT32_MAX, "the offset of a path fits");

void layer_links_init(struct layer_links *l)
{
	memset(l, 0, sizeof(*l));
	(void)!getrandom(&l->seed, sizeof(l->seed), 0);
}

void layer_links_free(struct layer_links *l)
{
	free(l->slots);
	free(l->paths);
	memset(l, 0, sizeof(*l));
}

static uint64_t mix_bits(uint64_t v)
{
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	return v ^ v >> 31;
}

/* The slot of the file, or the empty one to add it at. */
static struct layer_link *find_slot(const struct layer_links *l, const struct layer_link *file)
{
	uint64_t h = mix_bits(mix_bits(file->ino ^ l->seed) ^ mix_bits(file->dev + file->layer));

	for (size_t i = h & (l->size - 1);; i = (i + 1) & (l->size - 1)) {
		struct layer_link *s = &l->slots[i];

		if (!s->path ||
		    (s->dev == file->dev && s->ino == file->ino && s->layer == file->layer))
			return s;
	}
}

static bool exceeds_memory(size_t slots, size_t paths)
{
	return slots * sizeof(struct layer_link) + paths > LAYER_LINKS_BYTES;
}

static int grow_slots(struct layer_links *l)
{
	struct layer_links more = *l;

	if (l->size && 4 * (l->n + 1) <= 3 * l->size)
		return 0;
	more.size = l->size ? 2 * l->size : 64;
	if (exceeds_memory(more.size, l->paths_size))
		return -E2BIG;
	more.slots = calloc(more.size, sizeof(*more.slots));
	if (!more.slots)
		return -ENOMEM;
	for (size_t i = 0; i < l->size; i++)
		if (l->slots[i].path)
			*find_slot(&more, &l->slots[i]) = l->slots[i];
	free(l->slots);
	l->slots = more.slots;
	l->size = more.size;
	return 0;
}

static int grow_paths(struct layer_links *l, size_t add)
{
	size_t size = l->paths_size ? l->paths_size : 4096;
	char *more;

	while (size - l->paths_len < add)
		size *= 2;
	if (size == l->paths_size)
		return 0;
	if (exceeds_memory(l->size, size))
		return -E2BIG;
	more = realloc(l->paths, size);
	if (!more)
		return -ENOMEM;
	l->paths = more;
	l->paths_size = size;
	return 0;
}

int layer_links_add(struct layer_links *l, unsigned layer, const struct stat *st, const char *path,
		    const char **ret)
{
	struct layer_link file = { st->st_dev, st->st_ino, layer, 0 }, *s;
	size_t len = strlen(path) + 1;
	int r = grow_slots(l);

	if (r == 0)
		r = grow_paths(l, len);
	if (r < 0)
		return r;
	s = find_slot(l, &file);
	if (s->path) {
		*ret = l->paths + s->path - 1;
		return 1;
	}
	memcpy(l->paths + l->paths_len, path, len);
	file.path = (uint32_t)l->paths_len + 1;
	l->paths_len += len;
	*s = file;
	l->n++;
	return 0;
}
