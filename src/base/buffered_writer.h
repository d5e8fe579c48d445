/* SPDX-License-Identifier: Apache-2.0 */
/* Buffered output to a descriptor. */
#ifndef LODGE_BASE_BUFFERED_WRITER_H
#define LODGE_BASE_BUFFERED_WRITER_H

#include <stddef.h>

struct buffered_writer {
	int fd;
	size_t n;
	char buf[64 * 1024];
};

/* 0 or -errno. */
int buffered_writer_put(struct buffered_writer *w, const void *bytes, size_t len);
int buffered_writer_flush(struct buffered_writer *w);

#endif
