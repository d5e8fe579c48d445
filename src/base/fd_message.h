/* SPDX-License-Identifier: Apache-2.0 */
/* One message with descriptors over a SOCK_SEQPACKET socket. Leaf calls: >= 0 or -errno. */
#ifndef LODGE_BASE_FD_MESSAGE_H
#define LODGE_BASE_FD_MESSAGE_H

#include <stddef.h>
#include <sys/uio.h>

enum { SOCK_FDS_MAX = 16 }; /* maximum number of descriptors per message */

/* Sends the whole message or nothing. 0, or -errno: -EAGAIN if the socket is non-blocking and full,
 * -EPIPE (without a signal) if the peer has closed it. The caller keeps the descriptors. */
int fd_message_send(int fd, const void *bytes, size_t len, const int *fds, size_t nfds);
int fd_message_sendv(int fd, const struct iovec *iov, size_t niov, const int *fds, size_t nfds);

/* Returns the bytes received, 0 if the peer has closed the socket, or -errno. The caller owns the
 * descriptors, at most `maxfds` and close-on-exec; *ret_nfds is always set. A message that is
 * longer than `size` or has more descriptors is discarded, and the result is -EMSGSIZE. */
int fd_message_recv(int fd, void *buf, size_t size, int *fds, size_t maxfds, size_t *ret_nfds);

/* Makes a descriptor of any kind non-blocking. */
int fd_message_nonblock(int fd);

#endif
