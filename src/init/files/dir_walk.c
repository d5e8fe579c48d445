/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/dir_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_io.h"
#include "base/vec.h"
#include "init/core/guest_path.h"

int walk_root(const char *path)
{
	return guest_path_openat(AT_FDCWD, *path ? path : ".", O_RDONLY | O_DIRECTORY, 0);
}

int walk_dir(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All names one after the other; offsets would not survive a realloc, so pointers come last. */
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

int writer_flush(struct writer *w)
{
	int r = file_write_all(w->fd, w->buf, w->n);

	w->n = 0;
	return r;
}

int writer_put(struct writer *w, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		size_t n = sizeof(w->buf) - w->n;

		if (n > len)
			n = len;
		memcpy(w->buf + w->n, at, n);
		w->n += n;
		at += n;
		len -= n;
		if (w->n == sizeof(w->buf)) {
			int r = writer_flush(w);

			if (r < 0)
				return r;
		}
	}
	return 0;
}
