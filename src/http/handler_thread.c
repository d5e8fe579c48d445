/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads for handlers: started on demand, kept for a moment, then ended. */
#include "http/handler_thread.h"

#include "http/exchange.h"
#include "http/http_clock.h"

enum { LINGER_MS = 5000 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK_SIZE = 2 << 20 };
#else
enum { STACK_SIZE = 256 << 10 };
#endif

/* Locked. */
static struct http_request *next_request(struct http_server *s)
{
	struct http_request *rq = s->first;

	if (!rq)
		return NULL;
	s->first = rq->next;
	if (!s->first)
		s->last = NULL;
	s->queued--;
	s->busy++;
	return rq;
}

/* Locked. NULL: idle for too long. */
static struct http_request *await_request(struct http_server *s)
{
	struct http_request *rq;
	bool more = true;

	while (!(rq = next_request(s)) && more && !s->ending) {
		s->idle++;
		more = http_cond_wait(&s->work, &s->lock, LINGER_MS);
		s->idle--;
	}
	return rq;
}

static void *run_worker(void *arg)
{
	struct http_server *s = arg;
	struct http_request *rq;

	pthread_mutex_lock(&s->lock);
	while ((rq = await_request(s))) {
		pthread_mutex_unlock(&s->lock);
		s->opts.handler(s->opts.arg, rq);
		http_ended(rq);
		pthread_mutex_lock(&s->lock);
		s->busy--;
	}
	s->workers--;
	pthread_cond_broadcast(&s->change);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Locked. */
static void add_worker(struct http_server *s)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!pthread_create(&thread, &attr, run_worker, s))
		s->workers++;
	pthread_attr_destroy(&attr);
}

int http_worker_submit(struct http_server *s, struct http_request *rq)
{
	int r = -1;

	pthread_mutex_lock(&s->lock);
	if (!s->ending && s->busy + s->queued < s->opts.max_requests) {
		if (s->idle <= s->queued)
			add_worker(s);
		/* If the thread could not be started, an existing one takes the request. */
		if (s->workers) {
			rq->next = NULL;
			*(s->last ? &s->last->next : &s->first) = rq;
			s->last = rq;
			s->queued++;
			r = 0;
		}
	}
	pthread_mutex_unlock(&s->lock);
	if (!r) /* signal after unlocking, so the worker does not block */
		pthread_cond_signal(&s->work);
	return r;
}

void http_workers_end(struct http_server *s)
{
	pthread_mutex_lock(&s->lock);
	pthread_cond_broadcast(&s->work);
	while (s->workers)
		pthread_cond_wait(&s->change, &s->lock);
	pthread_mutex_unlock(&s->lock);
}
