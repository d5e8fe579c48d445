/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/name_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All names packed. realloc() moves them, so the caller builds the pointers afterwards. */
static int collect(DIR *d, char **ret_bytes, size_t *ret_len, size_t *ret_n)
{
	size_t len = 0, size = 0, n = 0;
	char *bytes = NULL;
	struct dirent *e;

	for (;;) {
		size_t add;

		errno = 0;
		e = readdir(d);
		if (!e)
			break;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		add = strlen(e->d_name) + 1;
		if (vec_reserve(&bytes, &size, len + add) < 0)
			break;
		memcpy(bytes + len, e->d_name, add);
		len += add;
		n++;
	}
	if (errno) {
		int error = errno;

		free(bytes);
		return -error;
	}
	*ret_bytes = bytes;
	*ret_len = len;
	*ret_n = n;
	return 0;
}

int name_list_read(struct name_list *to, int dir)
{
	int own = fcntl(dir, F_DUPFD_CLOEXEC, 0), r;
	DIR *d = own < 0 ? NULL : fdopendir(own);
	size_t len = 0, at = 0;

	*to = (struct name_list){ 0 };
	if (!d) {
		r = -errno;
		if (own >= 0)
			close(own);
		return r;
	}
	rewinddir(d); /* the position is shared with `dir` */
	r = collect(d, &to->bytes, &len, &to->n);
	closedir(d);
	if (r < 0)
		return r;
	to->list = calloc(to->n ? to->n : 1, sizeof(*to->list));
	if (!to->list) {
		free(to->bytes);
		return -ENOMEM;
	}
	for (size_t i = 0; i < to->n; i++) {
		to->list[i] = to->bytes + at;
		at += strlen(to->bytes + at) + 1;
	}
	qsort(to->list, to->n, sizeof(*to->list), compare);
	return 0;
}

void name_list_free(struct name_list *n)
{
	free(n->list);
	free(n->bytes);
}
