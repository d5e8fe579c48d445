/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server_conn.h"

#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "http/conn_limit.h"
#include "http/exchange.h"

enum { TICK_MIN_MS = 100, TICK_MAX_MS = 1000, TRIM_CONNS = 100, ACCEPT_MAX = 64 };

void server_conn_set_deadline(struct conn *c, uint64_t bytes)
{
	c->deadline_ms = clock_mono_ms() + (int64_t)c->server->opts.slow_s * 1000 +
			 (int64_t)(bytes / BYTES_PER_MS);
}

/* ---- accept ---------------------------------------------------------------------------------- */

static void set_address(struct conn *c, const struct sockaddr *sa)
{
	static const uint8_t mapped[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	union {
		const struct sockaddr *any;
		const struct sockaddr_in *v4;
		const struct sockaddr_in6 *v6;
	} a = { sa };

	c->is_unix = sa->sa_family != AF_INET && sa->sa_family != AF_INET6;
	if (sa->sa_family == AF_INET) {
		memcpy(&c->client, mapped, sizeof(mapped));
		memcpy(&c->client.s6_addr[sizeof(mapped)], &a.v4->sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		c->client = a.v6->sin6_addr;
	}
}

static bool add_conn(struct conn *c)
{
	struct http_server *s = c->server;

	MUTEX_GUARD(&s->lock);
	return !s->draining && !s->ending && conn_limit_add(c);
}

/* Takes over fd. */
static void conn_new(struct listener *l, int fd, const struct sockaddr *sa)
{
	struct http_server *s = l->server;
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT };
	struct conn *c = calloc(1, sizeof(*c));
	int one = 1;

	if (!c || conn_io_init(&c->io, fd, l->path ? NULL : s->tls) < 0) {
		if (!c)
			close(fd);
		free(c);
		return;
	}
	c->server = s;
	set_address(c, sa);
	c->is_proxy = !c->is_unix && proxy_net_contains(s->proxies, s->nproxies, c->client.s6_addr);
	c->armed = true;
	c->deadline_ms = clock_mono_ms() + (int64_t)s->opts.idle_s * 1000;
	if (!l->path)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (!add_conn(c)) {
		conn_io_fini(&c->io);
		free(c);
		return;
	}
	ev.data.ptr = c;
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
		server_conn_free(c);
}

void server_conn_accept(struct listener *l)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.ptr = l };
	struct sockaddr_storage sa;
	int fd = 0;

	for (int i = 0; i < ACCEPT_MAX && fd >= 0; i++) {
		socklen_t len = sizeof(sa);

		memset(&sa, 0, sizeof(sa));
		fd = accept4(l->fd, (struct sockaddr *)&sa, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			conn_new(l, fd, (struct sockaddr *)&sa);
	}
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
		usleep(TICK_MIN_MS * 1000); /* it stays readable */
	if (!l->server->draining)
		(void)epoll_ctl(l->server->epoll, EPOLL_CTL_MOD, l->fd, &ev);
}

/* ---- events ---------------------------------------------------------------------------------- */

void server_conn_arm(struct conn *c)
{
	struct epoll_event ev = {
		.events = EPOLLONESHOT | (c->io.wants == POLLOUT ? EPOLLOUT : EPOLLIN | EPOLLRDHUP),
		.data.ptr = c
	};
	struct http_server *s = c->server;

	c->armed = true;
	/* from here on another thread may have it */
	(void)epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->io.fd, &ev);
}

/* ---- end ------------------------------------------------------------------------------------- */

void server_conn_free(struct conn *c)
{
	struct http_server *s = c->server;

	pthread_mutex_lock(&s->lock);
	conn_limit_remove(c);
	pthread_mutex_unlock(&s->lock);
	conn_io_fini(&c->io);
	free(c->in);
	free(c);
}

/* If the end of the connection would look like the end of the response, this resets it (unix
 * sockets cannot). */
void server_conn_cut(struct conn *c)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	if (c->open_end)
		(void)connect(c->io.fd, &none, sizeof(none));
	shutdown(c->io.fd, SHUT_RDWR);
}

void server_conn_cut_all(struct http_server *s)
{
	MUTEX_GUARD(&s->lock);
	for (struct conn *c = s->strangers.newest; c; c = c->next)
		server_conn_cut(c);
	for (struct conn *c = s->trusted.newest; c; c = c->next)
		server_conn_cut(c);
}

/* Returns the memory of closed connections to the system, which the allocator would keep. */
static void trim_memory(unsigned now, unsigned *most)
{
	if (now > *most) {
		*most = now;
	} else if (now + TRIM_CONNS <= *most) {
		*most = now;
		malloc_trim(0);
	}
}

static void cut_expired(const struct conn_list *l, int64_t now)
{
	for (struct conn *c = l->newest; c; c = c->next) {
		int64_t deadline = c->deadline_ms;

		if (deadline && now > deadline)
			server_conn_cut(c);
	}
}

static unsigned cut_all_expired(struct http_server *s)
{
	int64_t now = clock_mono_ms();

	MUTEX_GUARD(&s->lock);
	cut_expired(&s->strangers, now);
	cut_expired(&s->trusted, now);
	return s->metrics.connections;
}

void *server_conn_reap(void *server)
{
	struct http_server *s = server;
	int64_t tick = (int64_t)s->opts.slow_s * 100;
	unsigned most = 0;
	bool on = true;

	tick = tick < TICK_MIN_MS ? TICK_MIN_MS : tick > TICK_MAX_MS ? TICK_MAX_MS : tick;
	while (on) {
		trim_memory(cut_all_expired(s), &most);
		MUTEX_GUARD(&s->lock);
		if (s->reaping)
			(void)cond_wait_until(&s->tick, &s->lock, clock_mono_ms() + tick);
		on = s->reaping;
	}
	return NULL;
}
