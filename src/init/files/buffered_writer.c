/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files/buffered_writer.h"

#include <string.h>

#include "base/file_io.h"

int buffered_writer_flush(struct buffered_writer *w)
{
	int r = file_write_all(w->fd, w->buf, w->n);

	w->n = 0;
	return r;
}

int buffered_writer_put(struct buffered_writer *w, const void *bytes, size_t len)
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
			int r = buffered_writer_flush(w);

			if (r < 0)
				return r;
		}
	}
	return 0;
}
