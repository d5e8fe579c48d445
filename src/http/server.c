/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "http/exchange.h"
#include "http/handler_thread.h"
#include "http/http_clock.h"
#include "http/internal.h"
#include "http/listen.h"
#include "http/response.h"
#include "http/server_conn.h"

static char tls_versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

static void set_defaults(struct http_opts *o)
{
	o->max_connections = o->max_connections ? o->max_connections : 12000;
	o->max_requests = o->max_requests ? o->max_requests : 1024;
	o->max_head = o->max_head ? o->max_head : 15 << 10;
	o->idle_s = o->idle_s ? o->idle_s : 60;
	o->slow_s = o->slow_s ? o->slow_s : 30;
}

static void server_release(struct http_server *s)
{
	pthread_cond_destroy(&s->tick);
	pthread_cond_destroy(&s->change);
	pthread_cond_destroy(&s->work);
	pthread_mutex_destroy(&s->lock);
	free(s->cert);
	free(s->key);
	free(s);
}

int http_server_new(const struct http_opts *opts, struct http_server **ret, struct err *err)
{
	struct http_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ERR_LIMIT, "out of memory");
	s->opts = *opts;
	set_defaults(&s->opts);
	pthread_mutex_init(&s->lock, NULL);
	http_cond_init(&s->work);
	http_cond_init(&s->change);
	http_cond_init(&s->tick);
	if (opts->tls_cert && opts->tls_key) {
		s->cert = strdup(opts->tls_cert);
		s->key = strdup(opts->tls_key);
		if (!s->cert || !s->key) {
			server_release(s);
			return err_set(err, ERR_LIMIT, "out of memory");
		}
	}
	s->reaping = true;
	r = pthread_create(&s->reaper, NULL, http_reap, s);
	if (r) {
		server_release(s);
		return err_sys(err, r, "start the connection thread");
	}
	*ret = s;
	return 0;
}

/* lodge decodes paths and values itself, so the library must not. */
static size_t keep_encoded(void *arg, struct MHD_Connection *mhd, char *s)
{
	(void)arg;
	(void)mhd;
	return strlen(s);
}

/* The memory for the head is allocated per connection and touched completely: it is the cost of an
 * idle connection. */
static struct MHD_Daemon *start_daemon(struct http_server *s, int fd, bool tls)
{
	const struct http_opts *o = &s->opts;
	unsigned flags =
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE;
	struct MHD_OptionItem plain[] = { { MHD_OPTION_END, 0, NULL } };
	struct MHD_OptionItem secure[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, s->cert },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, s->key },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, tls_versions },
		{ MHD_OPTION_END, 0, NULL },
	};

	return MHD_start_daemon(
		tls ? flags | MHD_USE_TLS : flags, 0, http_on_accept, s, http_on_request, s,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, o->max_connections,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, o->max_per_address,
		MHD_OPTION_CONNECTION_TIMEOUT, o->idle_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		o->max_head + HEAD_EXTRA, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
		http_on_connection, s, MHD_OPTION_URI_LOG_CALLBACK, http_on_target, s,
		MHD_OPTION_UNESCAPE_CALLBACK, keep_encoded, s, MHD_OPTION_ARRAY,
		tls ? secure : plain, MHD_OPTION_END);
}

int http_server_listen(struct http_server *s, const char *address, mode_t mode, char *ret,
		       size_t size, struct err *err)
{
	struct listener *l = &s->listeners[s->nlisteners];
	auto_close int fd = -1;
	char *path = NULL;
	int theirs;

	if (s->nlisteners == LISTENERS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d addresses to listen on",
			       LISTENERS_MAX);
	if (http_listen_on(address, mode, &fd, &path, ret, size, err))
		return -1;
	/* A duplicate for the library, which mostly closes it if it fails. */
	theirs = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	l->daemon = theirs < 0 ? NULL : start_daemon(s, theirs, s->cert && !path);
	if (!l->daemon) {
		if (path)
			unlink(path);
		free(path);
		return err_set(err, ERR_INVALID, "cannot serve %s%s", address,
			       s->cert ? " (is the certificate valid?)" : "");
	}
	l->path = path;
	l->fd = theirs;
	s->nlisteners++;
	return 0;
}

/* Refuses new connections, also those that wait in the accept queue. MHD_quiesce_daemon() would
 * remove the socket from the library's epoll set in two threads, and the library aborts if its own
 * loses that race. Here the socket stays in the set, as one whose only event is ignored. */
static void quiesce(struct http_server *s)
{
	struct epoll_event ignored = { .events = EPOLLET, .data.ptr = NULL };

	if (atomic_exchange(&s->draining, true))
		return;
	for (size_t i = 0; i < s->nlisteners; i++) {
		const struct listener *l = &s->listeners[i];
		const union MHD_DaemonInfo *info =
			MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);

		/* At its limit the library polls the socket no more, but will again: then it gets
		 * connections, which http_on_accept() refuses. */
		if (info && epoll_ctl(info->epoll_fd, EPOLL_CTL_MOD, l->fd, &ignored) == 0)
			shutdown(l->fd, SHUT_RDWR);
	}
}

void http_server_drain(struct http_server *s, unsigned ms)
{
	uint64_t until = clock_mono_us() / 1000 + ms, now;

	quiesce(s);
	pthread_mutex_lock(&s->lock);
	while (s->metrics.requests && (now = clock_mono_us() / 1000) < until)
		http_cond_wait(&s->change, &s->lock, until - now);
	pthread_mutex_unlock(&s->lock);
}

static void stop_reaper(struct http_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->reaping = false;
	pthread_cond_broadcast(&s->tick);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->reaper, NULL);
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	quiesce(s);
	pthread_mutex_lock(&s->lock);
	s->ending = true; /* no worker starts from here on */
	pthread_mutex_unlock(&s->lock);
	/* Afterwards no handler runs, so no connection is suspended: the library cannot stop with
	 * suspended connections. */
	http_abort_all(s);
	http_workers_end(s);
	stop_reaper(s);
	for (size_t i = 0; i < s->nlisteners; i++) {
		struct listener *l = &s->listeners[i];

		MHD_stop_daemon(l->daemon);
		if (l->path)
			unlink(l->path);
		free(l->path);
	}
	server_release(s);
}

void http_server_metrics(struct http_server *s, struct http_metrics *ret)
{
	pthread_mutex_lock(&s->lock);
	*ret = s->metrics;
	pthread_mutex_unlock(&s->lock);
}
