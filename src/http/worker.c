/* SPDX-License-Identifier: Apache-2.0 */
#include "http/worker.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "http/exchange.h"
#include "http/server_conn.h"
#include "http/stream_poller.h"

enum {
	LINGER_MS = 5000, /* an idle thread ends after this time */
	SPARE = 2, /* except for the last ones */
	/* threads for what has no place: refusals, the rest of responses, urgent requests */
	EXTRA = 8,
};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK_SIZE = 2 << 20 };
#else
enum { STACK_SIZE = 256 << 10 };
#endif

static void *run_worker(void *arg);

static int add_worker(struct http_server *s)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	atomic_fetch_add(&s->workers, 1);
	atomic_fetch_add(&s->waiting, 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attr, run_worker, s);
	pthread_attr_destroy(&attr);
	if (r) {
		atomic_fetch_sub(&s->waiting, 1);
		atomic_fetch_sub(&s->workers, 1);
	}
	return r;
}

int worker_start_first(struct http_server *s, struct err *err)
{
	int r = add_worker(s);

	return r ? err_sys(err, r, "start a thread") : 0;
}

/* The last thread that waits makes another before it handles its event, because that may take
 * long. If there cannot be one, the next event waits for this thread. */
static void leave_wait(struct http_server *s)
{
	if (atomic_fetch_sub(&s->waiting, 1) == 1 &&
	    atomic_load(&s->workers) < s->opts.max_requests + EXTRA)
		(void)add_worker(s);
}

/* False: this thread is not needed any more. */
static bool stay(struct http_server *s)
{
	unsigned n = atomic_load(&s->waiting);

	while (n > SPARE)
		if (atomic_compare_exchange_weak(&s->waiting, &n, n - 1))
			return false;
	return true;
}

static void handle_event(struct http_server *s, const struct epoll_event *ev)
{
	struct listener *l = ev->data.ptr;

	if (l >= s->listeners && l < s->listeners + LISTENERS_MAX)
		server_conn_accept(l);
	else if (ev->data.ptr == &s->poller)
		stream_poller_work(s);
	else
		exchange_continue(ev->data.ptr);
}

static void *run_worker(void *arg)
{
	struct http_server *s = arg;
	struct epoll_event ev;
	bool waits = true;

	while (!s->ending) {
		int n = epoll_wait(s->epoll, &ev, 1, LINGER_MS);

		if (n == 0 && !stay(s)) {
			waits = false;
			break;
		}
		if (n <= 0 || ev.data.ptr == s) /* `s`: the end */
			continue;
		leave_wait(s);
		handle_event(s, &ev);
		atomic_fetch_add(&s->waiting, 1);
	}
	if (waits)
		atomic_fetch_sub(&s->waiting, 1);
	pthread_mutex_lock(&s->lock);
	atomic_fetch_sub(&s->workers, 1);
	pthread_cond_broadcast(&s->change);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

void worker_end_all(struct http_server *s)
{
	(void)!write(s->wake, &(uint64_t){ 1 }, sizeof(uint64_t));
	pthread_mutex_lock(&s->lock);
	while (atomic_load(&s->workers))
		pthread_cond_wait(&s->change, &s->lock);
	pthread_mutex_unlock(&s->lock);
}
