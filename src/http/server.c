/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "http/exchange.h"
#include "http/listen.h"
#include "http/server_conn.h"
#include "http/stream_poller.h"
#include "http/worker.h"

enum { TARGET_SPARE = 256 }; /* bytes of a head that are not for its target */

static void set_defaults(struct http_opts *o)
{
	o->max_connections = o->max_connections ? o->max_connections : HTTP_CONNECTIONS;
	o->max_per_address = o->max_per_address ? o->max_per_address : 1024;
	o->max_requests = o->max_requests ? o->max_requests : HTTP_REQUESTS;
	o->max_head = o->max_head ? o->max_head : 15 << 10;
	o->idle_s = o->idle_s ? o->idle_s : 60;
	o->slow_s = o->slow_s ? o->slow_s : 30;
}

static void server_release(struct http_server *s)
{
	stream_poller_stop(s);
	pthread_mutex_destroy(&s->poller.mutex);
	worker_fini_all(&s->workers);
	pthread_cond_destroy(&s->tick);
	pthread_cond_destroy(&s->change);
	pthread_mutex_destroy(&s->lock);
	close_fd(&s->epoll);
	close_fd(&s->wake);
	conn_io_tls_free(s->tls);
	free(s);
}
DEFINE_AUTO(struct http_server *, server_release);

static int open_events(struct http_server *s, struct err *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = s };

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->epoll < 0 || s->wake < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->wake, &ev) < 0)
		return err_sys(err, errno, "epoll");
	return 0;
}

static int set_proxies(struct http_server *s, const char *const *list, struct err *err)
{
	for (; list && *list; list++) {
		if (s->nproxies == PROXY_NETS_MAX)
			return err_set(err, ERR_LIMIT, "more than %d proxies", PROXY_NETS_MAX);
		if (proxy_net_parse(*list, &s->proxies[s->nproxies], err) < 0)
			return -1;
		s->nproxies++;
	}
	return 0;
}

int http_server_new(const struct http_opts *opts, struct http_server **ret, struct err *err)
{
	auto_call(server_release) struct http_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ERR_LIMIT, "out of memory");
	s->epoll = s->wake = s->poller.epoll = s->poller.wake = s->poller.work = -1;
	s->opts = *opts;
	set_defaults(&s->opts);
	s->limits = (struct http1_limits){ .any_host = true,
					   .head = (uint32_t)s->opts.max_head,
					   .target = (uint32_t)(s->opts.max_head - TARGET_SPARE) };
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->poller.mutex, NULL);
	cond_init(&s->change);
	cond_init(&s->tick);
	worker_init_all(&s->workers);
	if (set_proxies(s, opts->trusted_proxies, err) < 0 || open_events(s, err) < 0 ||
	    stream_poller_start(s, err) < 0)
		return -1;
	if (opts->tls_cert && opts->tls_key &&
	    conn_io_tls_new(opts->tls_cert, opts->tls_key, &s->tls, err) < 0)
		return -1;
	s->reaping = true;
	r = pthread_create(&s->reaper, NULL, server_conn_reap, s);
	if (r)
		return err_sys(err, r, "start the connection thread");
	*ret = steal_ptr(&s);
	return 0;
}

int http_server_listen(struct http_server *s, const char *address, mode_t mode, char *ret,
		       size_t size, struct err *err)
{
	struct listener *l = &s->listeners[s->nlisteners];
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.ptr = l };
	auto_close int fd = -1;
	auto_free char *path = NULL;

	if (s->nlisteners == LISTENERS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d addresses to listen on",
			       LISTENERS_MAX);
	if (http_listen_on(address, mode, &fd, &path, ret, size, err))
		return -1;
	if (worker_start_all(s, err) < 0)
		return -1;
	*l = (struct listener){ .server = s, .fd = fd, .path = path };
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) < 0) {
		if (path)
			unlink(path);
		return err_sys(err, errno, "listen on %s", address);
	}
	(void)steal_fd(&fd);
	(void)steal_ptr(&path);
	s->nlisteners++;
	return 0;
}

/* Refuses new connections, also those that wait in the accept queue. */
static void stop_listening(struct http_server *s)
{
	if (atomic_exchange(&s->draining, true))
		return;
	for (size_t i = 0; i < s->nlisteners; i++) {
		(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->listeners[i].fd, NULL);
		shutdown(s->listeners[i].fd, SHUT_RDWR);
	}
}

void http_server_drain(struct http_server *s, unsigned ms)
{
	int64_t until = clock_mono_ms() + ms;

	stop_listening(s);
	MUTEX_GUARD(&s->lock);
	while (s->metrics.requests && cond_wait_until(&s->change, &s->lock, until))
		;
}

static void stop_reaper(struct http_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->reaping = false;
	pthread_cond_broadcast(&s->tick);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->reaper, NULL);
}

static void close_listeners(struct http_server *s)
{
	for (size_t i = 0; i < s->nlisteners; i++) {
		struct listener *l = &s->listeners[i];

		close(l->fd);
		if (l->path)
			unlink(l->path);
		free(l->path);
	}
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	stop_listening(s);
	pthread_mutex_lock(&s->lock);
	s->ending = true; /* no connection is added from here on */
	pthread_mutex_unlock(&s->lock);
	server_conn_cut_all(s);
	worker_end_all(s);
	stop_reaper(s);
	stream_poller_stop(s);
	while (s->strangers.newest)
		exchange_abandon(s->strangers.newest);
	while (s->trusted.newest)
		exchange_abandon(s->trusted.newest);
	close_listeners(s);
	server_release(s);
}

void http_server_metrics(struct http_server *s, struct http_metrics *ret)
{
	MUTEX_GUARD(&s->lock);
	*ret = s->metrics;
}
