/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/dir_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_io.h"
#include "base/vec.h"
#include "init/core/guest_path.h"

int dir_walk_root(const char *path)
{
	return guest_path_openat(AT_FDCWD, *path ? path : ".", O_RDONLY | O_DIRECTORY, 0);
}

int dir_walk_open(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(int dir, const char *name, void *arg)
{
	struct dir_names *names = arg;
	size_t add = strlen(name) + 1;

	(void)dir;
	if (vec_reserve(&names->bytes, &names->size, names->len + add) < 0)
		return -ENOMEM;
	memcpy(names->bytes + names->len, name, add);
	names->len += add;
	names->n++;
	return 0;
}

/* Pointers come last, because the bytes move while they grow. */
int dir_walk_names(struct dir_names *ret, int dir)
{
	int r = file_each_in(dir, add_name, ret);
	char *at = ret->bytes;

	ret->list = calloc(ret->n + 1, sizeof(*ret->list));
	if (r < 0 || !ret->list) {
		ret->n = 0;
		return r < 0 ? r : -ENOMEM;
	}
	for (size_t i = 0; i < ret->n; i++, at += strlen(at) + 1)
		ret->list[i] = at;
	qsort(ret->list, ret->n, sizeof(*ret->list), compare);
	return 0;
}

void dir_walk_free_names(struct dir_names *n)
{
	free(n->list);
	free(n->bytes);
}
