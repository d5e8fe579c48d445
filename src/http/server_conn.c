/* SPDX-License-Identifier: Apache-2.0 */
/* Connections, and the reaper thread that closes slow ones. The library closes only completely idle
 * connections; a byte now and then would keep one open forever. */
#include "http/server_conn.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "http/exchange.h"
#include "http/http_clock.h"
#include "http/request_head.h"
#include "http/response.h"

/* TCP_CLOSE_WAIT. The header that defines it conflicts with the one that defines tcp_info. */
enum { PEER_CLOSED = 8 };
enum { TICK_MIN_MS = 100, TICK_MAX_MS = 1000, TRIM_CONNS = 100 };

static uint64_t now_ms(void)
{
	return clock_mono_us() / 1000;
}

/* Bytes received so far; 0 where the kernel does not count (unix). */
static uint64_t bytes_in(int fd, bool *ret_half)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	*ret_half = false;
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return 0;
	*ret_half = info.tcpi_state == PEER_CLOSED;
	return info.tcpi_bytes_received;
}

void http_conn_await_head(struct conn *c)
{
	const struct http_opts *o = &c->server->opts;
	bool half;

	free(c->target);
	c->target = NULL;
	c->bytes_before = bytes_in(c->fd, &half);
	c->begun = c->half = c->open_end = false;
	c->deadline_ms = now_ms() + (uint64_t)(o->idle_s + o->slow_s) * 1000;
	c->in_head = true;
}

void http_conn_deadline(struct conn *c, uint64_t bytes)
{
	c->deadline_ms = now_ms() + (uint64_t)c->server->opts.slow_s * 1000 + bytes / BYTES_PER_MS;
}

bool http_conn_has(struct conn *c, uint64_t bytes)
{
	bool half;

	return bytes_in(c->fd, &half) >= c->bytes_before + bytes;
}

enum MHD_Result http_on_accept(void *server, const struct sockaddr *addr, socklen_t len)
{
	struct http_server *s = server;
	bool has_capacity;

	(void)addr;
	(void)len;
	pthread_mutex_lock(&s->lock);
	has_capacity = s->metrics.connections < s->opts.max_connections && !s->draining;
	pthread_mutex_unlock(&s->lock);
	return has_capacity ? MHD_YES : MHD_NO;
}

static void name_peer(struct conn *c, const struct sockaddr *sa)
{
	union {
		const struct sockaddr *any;
		const struct sockaddr_in *v4;
		const struct sockaddr_in6 *v6;
	} a = { sa };

	snprintf(c->peer, sizeof(c->peer), "unix");
	if (sa && sa->sa_family == AF_INET)
		inet_ntop(AF_INET, &a.v4->sin_addr, c->peer, sizeof(c->peer));
	else if (sa && sa->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a.v6->sin6_addr))
		inet_ntop(AF_INET, &a.v6->sin6_addr.s6_addr[12], c->peer, sizeof(c->peer));
	else if (sa && sa->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &a.v6->sin6_addr, c->peer, sizeof(c->peer));
}

static struct conn *conn_new(struct http_server *s, struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *fd =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	const union MHD_ConnectionInfo *addr;
	struct conn *c = fd ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return NULL;
	c->server = s;
	c->fd = fd->connect_fd;
	addr = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	name_peer(c, addr ? addr->client_addr : NULL);
	http_conn_await_head(c);
	c->bytes_before = 0;
	pthread_mutex_lock(&s->lock);
	c->next = s->conns;
	if (c->next)
		c->next->prev = c;
	s->conns = c;
	if (++s->metrics.connections > s->most)
		s->most = s->metrics.connections;
	pthread_mutex_unlock(&s->lock);
	return c;
}

/* The library closes the socket afterwards, so nothing may refer to it. */
static void conn_free(struct conn *c)
{
	struct http_server *s = c->server;

	pthread_mutex_lock(&s->lock);
	*(c->prev ? &c->prev->next : &s->conns) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	s->metrics.connections--;
	pthread_mutex_unlock(&s->lock);
	free(c->target);
	free(c);
}

void http_on_connection(void *server, struct MHD_Connection *mhd, void **conn,
			enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*conn = conn_new(server, mhd);
	} else if (*conn) {
		conn_free(*conn);
		*conn = NULL;
	}
}

void *http_on_target(void *server, const char *target, struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct conn *c = info ? info->socket_context : NULL;
	size_t len;

	(void)server;
	if (!c)
		return NULL;
	free(c->target);
	c->target = strdup(target);
	len = strlen(target) + http_parts_cost(target, strlen(target), '&');
	if (len > c->server->opts.max_head + HEAD_EXTRA / 2)
		http_conn_too_large(c, mhd);
	return NULL;
}

/* If the end of the connection would look like the end of the response, this resets it (unix
 * sockets cannot). */
void http_conn_cut(struct conn *c)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	if (c->open_end)
		(void)connect(c->fd, &none, sizeof(none));
	shutdown(c->fd, SHUT_RDWR);
}

/* Sends the response directly: the library would need memory for it, and would otherwise keep the
 * connection silently. Nothing else is being sent. */
void http_conn_too_large(struct conn *c, struct MHD_Connection *mhd)
{
	static const char text[] = "HTTP/1.1 431 Request Header Fields Too Large\r\n"
				   "Connection: close\r\nContent-Length: 0\r\n\r\n";

	if (!c->server->cert)
		(void)send(c->fd, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	http_conn_cut(c);
	MHD_set_connection_option(mhd, MHD_CONNECTION_OPTION_TIMEOUT, 1U);
}

void http_abort_all(struct http_server *s)
{
	pthread_mutex_lock(&s->lock);
	for (struct conn *c = s->conns; c; c = c->next)
		http_conn_cut(c);
	pthread_mutex_unlock(&s->lock);
}

/* Shortens the deadline from the first byte of a head, and to now if the client closed its half:
 * the library may miss that. Checked twice, because the library may be about to read. */
static void shorten_head_deadline(struct conn *c, uint64_t now)
{
	uint64_t deadline = now + (uint64_t)c->server->opts.slow_s * 1000, was = c->deadline_ms;
	bool half, begun = bytes_in(c->fd, &half) > c->bytes_before;

	if (half && c->half)
		deadline = 1;
	else if (!begun || c->begun)
		deadline = UINT64_MAX;
	c->half = half;
	c->begun = begun;
	/* The request may just have started; then it has no deadline. */
	if (was && deadline < was)
		atomic_compare_exchange_strong(&c->deadline_ms, &was, deadline);
}

/* Locked, except while trimming. Returns the memory of closed connections to the system, which the
 * allocator would keep. */
static void trim_memory(struct http_server *s, unsigned *last)
{
	unsigned now = s->metrics.connections, before = *last;

	*last = now;
	if (now < before || now + TRIM_CONNS > s->most)
		return;
	s->most = now;
	pthread_mutex_unlock(&s->lock);
	malloc_trim(0);
	pthread_mutex_lock(&s->lock);
}

void *http_reap(void *server)
{
	struct http_server *s = server;
	uint64_t tick = (uint64_t)s->opts.slow_s * 100;
	unsigned last = 0;

	tick = tick < TICK_MIN_MS ? TICK_MIN_MS : tick > TICK_MAX_MS ? TICK_MAX_MS : tick;
	pthread_mutex_lock(&s->lock);
	while (s->reaping) {
		uint64_t now = now_ms();

		for (struct conn *c = s->conns; c; c = c->next) {
			uint64_t deadline;

			if (c->in_head)
				shorten_head_deadline(c, now);
			deadline = c->deadline_ms;
			if (deadline && now > deadline)
				http_conn_cut(c);
		}
		trim_memory(s, &last);
		if (s->reaping)
			http_cond_wait(&s->tick, &s->lock, tick);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}
