/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets are non-blocking: calls that may wait use poll(2), with TLS and without. */
#include "client/client_conn.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd_message.h"
#include "client/client_tls.h"

enum {
	CONNECT_MS = 10000,
	/* detects a lost peer after about a minute, even on an idle stream */
	KEEP_IDLE_S = 30,
	KEEP_EACH_S = 10,
	KEEP_TIMES = 3,
	WRITE_MAX = 128 << 10,
};

/* ---- connecting ------------------------------------------------------------------------------ */

static int finish_connect(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int e = 0, n;

	do
		n = poll(&p, 1, CONNECT_MS);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) < 0 ? -errno : -e;
}

/* connect() to a unix socket with a full queue fails with EAGAIN at once, so it is retried for a
 * while. */
static int connect_socket(const struct sockaddr *a, socklen_t len)
{
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), e = 0;

	if (fd < 0)
		return -errno;
	for (int i = 0; i < CONNECT_MS / 10; i++) {
		e = connect(fd, a, len) == 0 ? 0 : -errno;
		if (e != -EAGAIN)
			break;
		(void)poll(NULL, 0, 10);
	}
	if (e == -EINPROGRESS || e == -EINTR)
		e = finish_connect(fd);
	if (e < 0) {
		close(fd);
		return e;
	}
	return fd;
}

static int connect_unix(const char *path, struct err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	int fd;

	if (len >= sizeof(a.sun_path))
		return err_set(err, ERR_INVALID, "unix:%.100s: longer than %zu bytes", path,
			       sizeof(a.sun_path) - 1);
	memcpy(a.sun_path, path, len);
	fd = connect_socket((struct sockaddr *)&a, sizeof(a));
	return fd < 0 ? err_sys(err, -fd, "unix:%s", path) : fd;
}

static void keep_alive(int fd)
{
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){ KEEP_IDLE_S }, sizeof(int));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){ KEEP_EACH_S }, sizeof(int));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){ KEEP_TIMES }, sizeof(int));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
}

static int connect_tcp(const struct client *c, struct err *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV }, *all;
	int e = getaddrinfo(c->host, c->port, &hints, &all), fd = -ECONNREFUSED;

	if (e) {
		err_set(err, ERR_UNAVAILABLE, "%.100s: %.100s", c->url, gai_strerror(e));
		err->sys = ECONNREFUSED;
		return -1;
	}
	for (const struct addrinfo *a = all; a && fd < 0; a = a->ai_next)
		fd = connect_socket(a->ai_addr, a->ai_addrlen);
	freeaddrinfo(all);
	if (fd < 0)
		return err_sys(err, -fd, "%.100s", c->url);
	keep_alive(fd);
	return fd;
}

/* Adds to a failed connect what to do about it. */
static int explain_refused(const struct client *c, struct err *err)
{
	int sys = err->sys;
	bool permission = sys == EACCES || sys == EPERM;

	if (err->code == ERR_INVALID || !sys)
		return -1;
	if (permission)
		return err_ctx(err, "permission denied to connect to lodged");
	err_ctx(err, "cannot connect to lodged (%s)",
		c->path ? "start it with `systemctl start lodged` or `./dev run`"
			: "is it running, and is the address right?");
	err->code = ERR_UNAVAILABLE;
	err->sys = ECONNREFUSED;
	return -1;
}

int conn_open(const struct client *c, struct conn *ret, struct err *err)
{
	int fd = c->path ? connect_unix(c->path, err) : connect_tcp(c, err);

	if (fd < 0)
		return explain_refused(c, err);
	if (conn_wrap(fd, ret, err) < 0)
		return -1;
	if (c->tls && tls_open(c->tls, fd, c->host, &ret->ssl, err) < 0) {
		conn_fini(ret);
		return -1;
	}
	return 0;
}

int conn_wrap(int fd, struct conn *ret, struct err *err)
{
	*ret = (struct conn){ .fd = fd, .buf = malloc(CONN_BUF) };
	if (ret->buf && fd_message_nonblock(fd) == 0)
		return 0;
	conn_fini(ret);
	return err_sys(err, ENOMEM, "connection");
}

void conn_fini(struct conn *c)
{
	tls_free(c->ssl);
	if (c->fd >= 0)
		close(c->fd);
	free(c->buf);
	*c = (struct conn){ .fd = -1 };
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int wait_for(const struct conn *c, short events)
{
	struct pollfd p = { .fd = c->fd, .events = events };
	int n = poll(&p, 1, c->limit_ms ? c->limit_ms : -1);

	if (n == 0)
		return -ETIMEDOUT;
	return n < 0 && errno != EINTR ? -errno : 0;
}

/* Returns bytes, 0 at the end, or -errno; with -EAGAIN, *ret_wait is what to poll for. */
static ssize_t read_some(struct conn *c, void *buf, size_t size, short *ret_wait)
{
	ssize_t n;

	if (c->ssl)
		return tls_read(c->ssl, buf, size, ret_wait);
	*ret_wait = POLLIN;
	n = recv(c->fd, buf, size, 0);
	return n < 0 ? -errno : n;
}

static ssize_t write_some(struct conn *c, const void *data, size_t len, short *ret_wait)
{
	ssize_t n;

	if (c->ssl)
		return tls_write(c->ssl, data, len, ret_wait);
	*ret_wait = POLLOUT;
	n = send(c->fd, data, len, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

int conn_write(struct conn *c, const void *data, size_t len)
{
	const char *p = data;
	short events = POLLOUT;

	while (len) {
		ssize_t n = write_some(c, p, len < WRITE_MAX ? len : WRITE_MAX, &events);

		if (n == -EAGAIN)
			n = wait_for(c, events);
		else if (n == 0)
			return -EPIPE;
		if (n < 0 && n != -EINTR)
			return (int)n;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static ssize_t read_waiting(struct conn *c, void *buf, size_t size, bool wait)
{
	short events = POLLIN;
	ssize_t n;

	for (;;) {
		n = read_some(c, buf, size, &events);
		if (n == -EINTR)
			continue;
		if (n != -EAGAIN || !wait)
			return n;
		n = wait_for(c, events);
		if (n < 0)
			return n;
	}
}

ssize_t conn_fill(struct conn *c, bool wait)
{
	ssize_t n;

	if (c->at) {
		memmove(c->buf, c->buf + c->at, c->len - c->at);
		c->len -= c->at;
		c->at = 0;
	}
	n = read_waiting(c, c->buf + c->len, CONN_BUF - c->len, wait);
	if (n > 0)
		c->len += (size_t)n;
	return n;
}

ssize_t conn_read(struct conn *c, void *buf, size_t size)
{
	size_t n = c->len - c->at;

	if (!n)
		return read_waiting(c, buf, size, true);
	n = n < size ? n : size;
	memcpy(buf, c->buf + c->at, n);
	c->at += n;
	return (ssize_t)n;
}

bool conn_pending(const struct conn *c)
{
	return c->at < c->len || (c->ssl && tls_pending(c->ssl));
}

bool conn_answered(const struct conn *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	return !c->ssl && poll(&p, 1, 0) > 0;
}
