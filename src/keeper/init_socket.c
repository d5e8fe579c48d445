/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/init_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/fd_message.h"
#include "wire/agent_proto.h"

enum { BACKLOG = 64, RETRY_US = 2000 };

static struct sockaddr_un init_address(int dir)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/init.sock", dir);
	return a;
}

int init_socket_listen(int dir)
{
	auto_close int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a = init_address(dir);

	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(s, BACKLOG) < 0)
		return -errno;
	return steal_fd(&s);
}

int init_socket_connect(struct keeper *k, const char *id, int *ret_fd, struct err *err)
{
	auto_close int dir =
		openat(k->sandboxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	auto_close int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a = init_address(dir);

	if (dir < 0 || s < 0)
		return err_sys(err, errno, "sandbox %s", id);
	if (connect(s, (struct sockaddr *)&a, sizeof(a)) < 0)
		return err_set(err, ERR_UNAVAILABLE, "sandbox %s does not answer", id);
	*ret_fd = steal_fd(&s);
	return 0;
}

int init_socket_bind(struct keeper *k, const struct keeper_create *c, int fd, struct err *err)
{
	struct {
		struct agent_hdr hdr;
		struct agent_bind bind;
	} msg = {
		.hdr = { .type = AGENT_BIND, .len = sizeof(msg.bind) },
		.bind = { .version = AGENT_VERSION,
			  .uid = c->uid,
			  .gid = c->gid,
			  .open_files = c->limits.open_files,
			  .output_pages = (uint32_t)(limits_output_share(c->limits.memory_bytes) /
						     AGENT_PAGE),
			  .file_bytes = c->limits.file_bytes },
	};
	int r;

	if (c->class == KEEPER_CLASS_ROOT)
		msg.bind.flags |= AGENT_BIND_ROOT_CLASS;
	if (k->rootless)
		msg.bind.flags |= AGENT_BIND_ONE_ID;
	r = fd_message_send(fd, &msg, sizeof(msg), NULL, 0);
	return r < 0 ? err_sys(err, -r, "bind") : 0;
}

/* True: it answered as one that is bound. */
static bool says_hello(struct keeper *k, const char *id, int64_t deadline_ms)
{
	struct agent_hdr ask = { .type = AGENT_HELLO, .req = 1 }, answer;
	int64_t left = deadline_ms - clock_mono_ms();
	auto_close int fd = -1;
	struct pollfd p = { .events = POLLIN };
	struct err ignored;

	if (left <= 0 || init_socket_connect(k, id, &fd, &ignored) < 0 ||
	    fd_message_send(fd, &ask, sizeof(ask), NULL, 0) < 0)
		return false;
	p.fd = fd;
	return poll(&p, 1, (int)left) > 0 && /* the rest of the message is cut off */
	       recv(fd, &answer, sizeof(answer), 0) == sizeof(answer) &&
	       answer.type == AGENT_HELLOR;
}

void init_socket_await_bound(struct keeper *k, const char *id, int64_t deadline_ms)
{
	while (clock_mono_ms() < deadline_ms && !says_hello(k, id, deadline_ms))
		usleep(RETRY_US);
}
