/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd_message.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tap.h"

static int s[2];

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void a_message_arrives_with_its_descriptors(void)
{
	int fds[3], got[4];
	size_t n;
	char buf[16];

	for (int i = 0; i < 3; i++)
		fds[i] = dup(0);
	CHECK(fd_message_send(s[0], "hello", 5, fds, 3) == 0);
	CHECK(fd_message_recv(s[1], buf, sizeof(buf), got, 4, &n) == 5 && n == 3);
	CHECK(!memcmp(buf, "hello", 5));
	for (int i = 0; i < 3; i++) {
		CHECK(fcntl(got[i], F_GETFD) == FD_CLOEXEC);
		close(got[i]);
		close(fds[i]);
	}
}

static void descriptors_that_do_not_fit_are_closed(void)
{
	int fds[3], got[4] = { -1, -1, -1, -1 }, before = dup(0);
	size_t n;
	char buf[4];

	for (int i = 0; i < 3; i++)
		fds[i] = dup(0);
	CHECK(fd_message_send(s[0], "abc", 3, fds, 3) == 0);
	CHECK(fd_message_recv(s[1], buf, sizeof(buf), got, 1, &n) == -EMSGSIZE && n == 0);
	CHECK(fd_message_send(s[0], "longer", 6, fds, 1) == 0);
	CHECK(fd_message_recv(s[1], buf, sizeof(buf), got, 4, &n) == -EMSGSIZE && n == 0);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	close(before);
	CHECK(dup(0) == before); /* no descriptor below it is open */
	close(before);
	CHECK(!is_open(before));
	CHECK(fd_message_send(s[0], "a", 1, NULL, 0) == 0);
	CHECK(fd_message_recv(s[1], buf, sizeof(buf), got, 4, &n) == 1);
}

static void a_full_socket_and_a_closed_peer_are_reported(void)
{
	static char big[65536];
	size_t n;
	int r, got[1];

	CHECK(fd_message_nonblock(s[0]) == 0 && fd_message_nonblock(s[1]) == 0 &&
	      fd_message_nonblock(-1) == -EBADF);
	while ((r = fd_message_send(s[0], big, sizeof(big), NULL, 0)) == 0)
		;
	CHECK(r == -EAGAIN);
	while (fd_message_recv(s[1], big, sizeof(big), got, 1, &n) > 0)
		;
	CHECK(fd_message_recv(s[1], big, sizeof(big), got, 1, &n) == -EAGAIN);
	close(s[1]);
	CHECK(fd_message_send(s[0], "x", 1, NULL, 0) == -EPIPE);
	CHECK(fd_message_recv(s[0], big, sizeof(big), got, 1, &n) == 0);
	CHECK(fd_message_send(s[0], "x", 1, got, SOCK_FDS_MAX + 1) == -EINVAL);
	close(s[0]);
}

int main(void)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) < 0)
		return 1;
	RUN(a_message_arrives_with_its_descriptors);
	RUN(descriptors_that_do_not_fit_are_closed);
	RUN(a_full_socket_and_a_closed_peer_are_reported);
	return tap_done();
}
