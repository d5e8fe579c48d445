/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/layer_stack.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/auto.h"
#include "runtime/storage/layer_links.h"
#include "runtime/storage/layer_walk.h"

struct usage {
	struct layer_links links;
	uint64_t blocks;
};

static int add_dir(void *arg, const struct layer_walk_dir *d)
{
	struct usage *s = arg;

	s->blocks += (uint64_t)d->st.st_blocks;
	return 0;
}

static int add_entry(void *arg, const struct layer_walk_item *i)
{
	struct usage *s = arg;
	const char *first;
	int r = 0;

	if (i->st.st_nlink > 1)
		r = layer_links_add(&s->links, 0, &i->st, "", &first);
	if (r == 0)
		s->blocks += (uint64_t)i->st.st_blocks;
	return r < 0 ? r : 0;
}

int layer_stack_bytes(int dir, uint64_t *ret)
{
	static const struct layer_walk_ops ops = { add_dir, NULL, add_entry, add_entry };
	struct usage s = { .blocks = 0 };
	int r;

	layer_links_init(&s.links);
	r = layer_walk(&dir, 1, &ops, &s);
	layer_links_free(&s.links);
	if (r < 0)
		return r;
	*ret = s.blocks * 512;
	return 0;
}

int layer_stack_sync(int dir)
{
	auto_close int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || syncfs(fd) < 0 ? -errno : 0;
}
