/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a connection, plain or with TLS. Only conn_io_wait() blocks. */
#ifndef LODGE_HTTP_CONN_IO_H
#define LODGE_HTTP_CONN_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/err.h"

struct ssl_st;
struct ssl_ctx_st;

struct conn_io {
	int fd;
	struct ssl_st *tls; /* NULL: plain */
	short wants; /* after EAGAIN: POLLIN or POLLOUT */
};

/* Both texts are PEM. */
int conn_io_tls_new(const char *cert, const char *key, struct ssl_ctx_st **ret, struct err *err);
void conn_io_tls_free(struct ssl_ctx_st *tls);

/* Takes over fd, also on failure, and makes it non-blocking. tls NULL: plain. */
int conn_io_init(struct conn_io *io, int fd, struct ssl_ctx_st *tls);
void conn_io_fini(struct conn_io *io);

/* 0: the peer closed its half; -1: errno, with EAGAIN after setting `wants`. */
ssize_t conn_io_recv(struct conn_io *io, void *buf, size_t len);
/* Bytes sent of all parts together. more: the next call follows at once. A call after EAGAIN must
 * begin with the same bytes. */
ssize_t conn_io_send(struct conn_io *io, const struct iovec *parts, int n, bool more);
/* 0: the file is shorter. */
ssize_t conn_io_send_file(struct conn_io *io, int file, uint64_t offset, uint64_t len);

/* False: the deadline (clock_mono_ms()) has passed. */
bool conn_io_wait(const struct conn_io *io, short events, int64_t until_ms);
/* The peer disconnected or closed its sending half. */
bool conn_io_is_closed(const struct conn_io *io);
/* Sends what announces an orderly end, and shuts down sending. */
void conn_io_shut(struct conn_io *io);

#endif
