/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd_message.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Larger than the accepted maximum, so that surplus descriptors are received and closed instead of
 * dropped silently. */
union control {
	char bytes[CMSG_SPACE(sizeof(int) * (SOCK_FDS_MAX + 1))];
	struct cmsghdr align;
};

int fd_message_sendv(int fd, const struct iovec *iov, size_t niov, const int *fds, size_t nfds)
{
	union control control;
	struct msghdr msg = { .msg_iovlen = niov };
	struct cmsghdr *c;
	size_t want = 0;
	ssize_t n;

	if (nfds > SOCK_FDS_MAX || niov > IOV_MAX)
		return -EINVAL;
	/* sendmsg() does not write to it. NOLINTNEXTLINE(bugprone-sizeof-expression) */
	memcpy(&msg.msg_iov, &iov, sizeof(iov));
	if (nfds) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	for (size_t i = 0; i < niov; i++)
		want += iov[i].iov_len;
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == want ? 0 : -EMSGSIZE;
}

int fd_message_send(int fd, const void *bytes, size_t len, const int *fds, size_t nfds)
{
	struct iovec iov = { .iov_len = len };

	memcpy(&iov.iov_base, &bytes, sizeof(bytes)); /* sendmsg() does not write to it */
	return fd_message_sendv(fd, &iov, 1, fds, nfds);
}

/* Stores the descriptors that fit and closes the others; true if there were others. */
static bool store_fds(struct cmsghdr *c, int *fds, size_t maxfds, size_t *nfds)
{
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	bool surplus = false;

	for (size_t i = 0; i < n; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		if (*nfds < maxfds) {
			fds[(*nfds)++] = fd;
		} else {
			close(fd);
			surplus = true;
		}
	}
	return surplus;
}

int fd_message_recv(int fd, void *buf, size_t size, int *fds, size_t maxfds, size_t *ret_nfds)
{
	union control control;
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	bool bad = false;
	ssize_t n;

	*ret_nfds = 0;
	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			bad |= store_fds(c, fds, maxfds, ret_nfds);
	if (!bad && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && n <= INT_MAX)
		return (int)n;
	while (*ret_nfds)
		close(fds[--*ret_nfds]);
	return -EMSGSIZE;
}

int fd_message_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}
