/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to and from one socket. */
#ifndef LODGE_CLIENT_CLIENT_CONN_H
#define LODGE_CLIENT_CLIENT_CONN_H

#include "client/internal.h"

enum { CONN_BUF = HEAD_MAX };

struct conn {
	int fd; /* non-blocking; -1: none */
	SSL *ssl;
	int limit_ms; /* timeout of each wait; 0: none */
	size_t at, len; /* unread bytes in the buffer */
	char *buf; /* CONN_BUF bytes */
};

int conn_open(const struct client *c, struct conn *ret, struct err *err);
int conn_wrap(int fd, struct conn *ret, struct err *err); /* owns fd, also on failure */
void conn_fini(struct conn *c);
/* Writes all bytes; 0 or -errno. */
int conn_write(struct conn *c, const void *data, size_t len);
/* Reads into the buffer, which must not be full. Returns bytes, 0 at the end, or -errno; -EAGAIN
 * only without `wait`. */
ssize_t conn_fill(struct conn *c, bool wait);
/* Reads from the buffer or, if it is empty, from the socket, which waits. */
ssize_t conn_read(struct conn *c, void *buf, size_t size);
bool conn_pending(const struct conn *c);
/* True if a response has started to arrive, as far as visible without reading. */
bool conn_answered(const struct conn *c);

#endif
