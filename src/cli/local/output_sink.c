/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/local/output_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void output_sink_init(struct output_sink *s, int fd)
{
	struct stat st;
	char path[32];

	*s = (struct output_sink){ .fd = fd, .own = -1, .chunk = SSIZE_MAX };
	if (fstat(fd, &st) < 0)
		return;
	s->socket = S_ISSOCK(st.st_mode);
	if (S_ISFIFO(st.st_mode)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		s->own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		if (s->own >= 0)
			s->fd = s->own;
	}
	/* poll() guarantees space for PIPE_BUF bytes in a pipe or terminal, not more */
	if ((S_ISFIFO(st.st_mode) && s->own < 0) || S_ISCHR(st.st_mode))
		s->chunk = PIPE_BUF;
}

void output_sink_fini(struct output_sink *s)
{
	if (s->own >= 0)
		close(s->own);
	s->own = -1;
}

ssize_t output_sink_write(struct output_sink *s, const void *data, size_t len)
{
	struct pollfd p = { .fd = s->fd, .events = POLLOUT };
	ssize_t n;

	if (len > s->chunk)
		len = s->chunk;
	if (s->chunk == PIPE_BUF && poll(&p, 1, 0) == 0)
		return -EAGAIN;
	n = s->socket ? send(s->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL)
		      : write(s->fd, data, len);
	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
		s->dead = true;
	return n < 0 ? -errno : n;
}
