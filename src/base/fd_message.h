/* SPDX-License-Identifier: Apache-2.0 */
/* One message with descriptors over a SOCK_SEQPACKET socket. Leaf calls: >= 0 or -errno. */
#ifndef LODGE_BASE_FD_MESSAGE_H
#define LODGE_BASE_FD_MESSAGE_H

#include <stddef.h>
#include <sys/uio.h>

enum { SOCK_FDS_MAX = 16 }; /* most descriptors one message can carry here */

/* The whole message or nothing. 0, or -errno: -EAGAIN when the socket is full and non-blocking,
 * -EPIPE without a signal when the peer is gone. The descriptors stay the caller's. */
int fd_message_send(int fd, const void *bytes, size_t len, const int *fds, size_t nfds);
int fd_message_sendv(int fd, const struct iovec *iov, size_t niov, const int *fds, size_t nfds);

/* Bytes received, 0 when the peer is gone, or -errno. At most `maxfds` descriptors are stored,
 * close-on-exec, and are the caller's; *ret_nfds is always set. A message that is longer than
 * `size` or carries more descriptors is taken off the socket, its descriptors are closed, and the
 * answer is -EMSGSIZE. */
int fd_message_recv(int fd, void *buf, size_t size, int *fds, size_t maxfds, size_t *ret_nfds);

/* Of any kind: what cannot be done at once is -EAGAIN from now on. */
int fd_message_nonblock(int fd);

#endif
