/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/tar_extract.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "cli/core/human.h"

struct list {
	char **options;
	size_t n;
};

void tar_extract_filter_free(char **options)
{
	for (char **o = options; o && *o; o++)
		free(*o);
	free((void *)options);
}

/* NULL: it can be copied. */
static const char *kind_of(mode_t mode)
{
	return S_ISFIFO(mode)			? "a pipe"
	       : S_ISSOCK(mode)			? "a socket"
	       : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
						: NULL;
}

static int add(struct list *l, const char *option, const char *name)
{
	char **more = reallocarray((void *)l->options, l->n + 2, sizeof(*more));
	char *word;

	if (!more)
		return -1;
	l->options = more;
	more[l->n] = NULL;
	if (asprintf(&word, "%s%s", option, name) < 0)
		return -1;
	more[l->n++] = word;
	more[l->n] = NULL;
	return 0;
}

static int exclude(struct list *l, const char *path, size_t root, const char *kind)
{
	auto_free char *clean = human_clean_dup(path);
	const char *name = path + root + strspn(path + root, "/");

	fprintf(stderr, "lodge: %s: skipped, because it is %s\n", clean ? clean : "", kind);
	/* exact names from the top, so that no other file is excluded */
	if (!l->n && (add(l, "--anchored", "") < 0 || add(l, "--no-wildcards", "") < 0))
		return -1;
	return add(l, "--exclude=./", name);
}

int tar_extract_filter(const char *dir, char ***ret, struct err *err)
{
	auto_free char *top = strdup(dir);
	char *const roots[] = { top, NULL };
	struct list l = { 0 };
	FTS *tree = top ? fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL) : NULL;
	const FTSENT *e;
	int r = tree ? 0 : -1;

	while (r == 0 && (e = fts_read(tree))) {
		const char *kind =
			e->fts_info == FTS_DEFAULT ? kind_of(e->fts_statp->st_mode) : NULL;

		if (kind && e->fts_level > 0)
			r = exclude(&l, e->fts_path, strlen(top), kind);
	}
	if (tree)
		fts_close(tree);
	*ret = l.options;
	return r < 0 ? err_sys(err, ENOMEM, "%.160s", dir) : 0;
}
