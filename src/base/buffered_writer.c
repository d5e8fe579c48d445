/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buffered_writer.h"

#include <string.h>

#include "base/file_io.h"

int buffered_writer_flush(struct buffered_writer *w)
{
	size_t n = w->n;

	w->n = 0;
	return file_write_all(w->fd, w->buf, n);
}

int buffered_writer_put(struct buffered_writer *w, const void *bytes, size_t len)
{
	const char *at = bytes;
	int r = 0;

	while (len && r == 0) {
		size_t n = sizeof(w->buf) - w->n;

		n = n < len ? n : len;
		memcpy(w->buf + w->n, at, n);
		w->n += n;
		at += n;
		len -= n;
		if (w->n == sizeof(w->buf))
			r = buffered_writer_flush(w);
	}
	return r;
}
