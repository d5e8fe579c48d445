/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/tar_whiteout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/file_io.h"
#include "init/files/dir_walk.h"
#include "init/files/remove_job.h"

enum { SLOTS_MIN = 1 << 10, SLOTS_MAX = 16 << 20, LEVELS_MAX = 200 };

#define HASH_EMPTY 0xcbf29ce484222325ull

/* ---- paths ----------------------------------------------------------------------------------- */

static uint64_t hash_byte(uint64_t h, char c)
{
	return (h ^ (unsigned char)c) * 0x100000001b3ull;
}

static uint64_t hash_name(uint64_t h, const char *name)
{
	if (h != HASH_EMPTY)
		h = hash_byte(h, '/');
	while (*name)
		h = hash_byte(h, *name++);
	return h;
}

/* The slot of the hash, or the free one where it belongs; 0 marks a free one. */
static uint64_t *find_slot(uint64_t *slots, size_t size, uint64_t h)
{
	size_t i = (size_t)(h ^ h >> 32) & (size - 1);

	while (slots[i] && slots[i] != h)
		i = (i + 1) & (size - 1);
	return &slots[i];
}

static int grow_slots(struct tar_paths *p)
{
	size_t size = p->size ? 2 * p->size : SLOTS_MIN;
	uint64_t *slots = size <= SLOTS_MAX ? calloc(size, sizeof(*slots)) : NULL;

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < p->size; i++)
		if (p->slots[i])
			*find_slot(slots, size, p->slots[i]) = p->slots[i];
	free(p->slots);
	p->slots = slots;
	p->size = size;
	return 0;
}

static int add_hash(struct tar_paths *p, uint64_t h)
{
	int r = 2 * p->n >= p->size ? grow_slots(p) : 0;
	uint64_t *slot = r < 0 ? NULL : find_slot(p->slots, p->size, h);

	if (slot && !*slot) {
		*slot = h;
		p->n++;
	}
	return r;
}

static bool has_hash(const struct tar_paths *p, uint64_t h)
{
	return p->size && *find_slot(p->slots, p->size, h);
}

int tar_paths_add(struct tar_paths *p, const char *path)
{
	uint64_t h = HASH_EMPTY;
	int r = 0;

	for (; *path && r == 0; path++) {
		if (*path == '/')
			r = add_hash(p, h);
		h = hash_byte(h, *path);
	}
	return r < 0 ? r : add_hash(p, h);
}

void tar_paths_fini(struct tar_paths *p)
{
	free(p->slots);
	*p = (struct tar_paths){ 0 };
}

/* ---- whiteouts ------------------------------------------------------------------------------- */

struct sweep {
	const struct tar_paths *keep;
	uint64_t hash; /* of the directory */
	dev_t dev;
	unsigned level;
};

static int sweep_entry(int dir, const char *name, void *arg)
{
	struct sweep *s = arg, below = *s;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode) && st.st_dev != s->dev) /* mounted */
		return 0;
	below.hash = hash_name(s->hash, name);
	below.level++;
	if (!has_hash(s->keep, below.hash))
		return remove_job_tree(dir, name);
	if (!S_ISDIR(st.st_mode))
		return 0;
	return below.level > LEVELS_MAX ? -ENAMETOOLONG
					: file_each_at(dir, name, sweep_entry, &below);
}

static int sweep_dir(const struct tar_paths *p, int dir, dev_t dev, const char *path, size_t len)
{
	struct sweep s = { p, HASH_EMPTY, dev, 0 };
	auto_close int here = dir_walk_open(dir, ".");

	for (size_t i = 0; i + 1 < len; i++) /* without the last slash */
		s.hash = hash_byte(s.hash, path[i]);
	return here < 0 ? here : file_each_in(here, sweep_entry, &s);
}

bool tar_whiteout_is_one(const char *name)
{
	return strncmp(name, ".wh.", 4) == 0;
}

int tar_whiteout_apply(const struct tar_paths *p, int dir, const char *path, const char *name)
{
	const char *gone = name + 4;
	struct stat st, here;

	if (fstat(dir, &here) < 0)
		return -errno;
	if (!strcmp(name, ".wh..wh..opq"))
		return sweep_dir(p, dir, here.st_dev, path, (size_t)(name - path));
	if (!*gone || !strcmp(gone, ".") || !strcmp(gone, "..") || !strncmp(gone, ".wh.", 4))
		return 0;
	if (fstatat(dir, gone, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode) && st.st_dev != here.st_dev)
		return 0;
	return remove_job_tree(dir, gone);
}
