/* SPDX-License-Identifier: Apache-2.0 */
/* A stream is WAITING in the poller's epoll set, or QUEUED for a worker, or RUNNING its step on
 * one. Only the poller's thread takes a stream out of the set, after its end: it may hold an event
 * of the stream until then. The connection stays in the server's set meanwhile, without being
 * armed. */
#include "http/stream_poller.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "http/exchange.h"
#include "http/response.h"
#include "http/server_conn.h"

enum { EVENTS = 64, IDLE_MS = 60000 };

static void notify(int fd)
{
	(void)!write(fd, &(uint64_t){ 1 }, sizeof(uint64_t));
}

/* ---- queues; all with the poller's mutex ----------------------------------------------------- */

static void push(struct stream_queue *q, struct stream *st)
{
	st->queued_next = NULL;
	*(q->last ? &q->last->queued_next : &q->first) = st;
	q->last = st;
}

static struct stream *pop(struct stream_queue *q)
{
	struct stream *st = q->first;

	if (!st)
		return NULL;
	q->first = st->queued_next;
	if (!q->first)
		q->last = NULL;
	return st;
}

static void make_ready(struct stream_poller *p, struct stream *st)
{
	if (st->state == STREAM_RUNNING)
		st->woken = true;
	if (st->state != STREAM_WAITING)
		return;
	st->state = STREAM_QUEUED;
	push(&p->ready, st);
	notify(p->work);
}

/* ---- steps, on a worker ---------------------------------------------------------------------- */

/* A client that takes as many bytes as BYTES_PER_MS asks for moves its deadline. */
static void move_deadline(struct conn *c, uint64_t pending, uint64_t sent)
{
	if (c->deadline_ms)
		c->deadline_ms += (int64_t)(sent / BYTES_PER_MS);
	else
		server_conn_set_deadline(c, pending);
}

/* When the next step is due: -1: never, it has ended. */
static int run_step(struct stream *st)
{
	struct http_request *rq = st->rq;
	int ms = rq->broken ? -1 : st->ops->step(st->arg);
	bool full = http_stream_is_full(rq);
	size_t pending = rq->out.len - rq->out.at;

	if (ms < 0 || rq->upgraded)
		return ms;
	switch (response_flush(rq)) {
	case 0:
		rq->conn->deadline_ms = 0;
		return full ? 0 : ms; /* no event would tell that there is space again */
	case 1:
		move_deadline(rq->conn, pending, pending - (rq->out.len - rq->out.at));
		return ms;
	default:
		rq->broken = true;
		return -1;
	}
}

static void finish(struct stream_poller *p, struct stream *st)
{
	struct http_request *rq = st->rq;

	if (st->source >= 0)
		(void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, st->source, NULL);
	st->ops->end(st->arg);
	if (!rq->upgraded && !rq->aborted && !rq->broken)
		response_end_stream(rq);
	MUTEX_GUARD(&p->mutex);
	st->state = STREAM_ENDED;
	push(&p->ended, st);
	notify(p->wake);
}

static uint32_t get_events(const struct http_request *rq)
{
	uint32_t events = EPOLLRDHUP | EPOLLONESHOT;

	if (rq->upgraded)
		return events | rq->stream_state.watched;
	return events | (rq->out.at < rq->out.len ? EPOLLOUT : 0u);
}

/* A full stream reads no more. */
static void arm_source(struct stream_poller *p, struct stream *st)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.ptr = st };

	if (st->source >= 0 && !http_stream_is_full(st->rq))
		(void)epoll_ctl(p->epoll, EPOLL_CTL_MOD, st->source, &ev);
}

/* With the mutex. */
static void await_event(struct stream_poller *p, struct stream *st, int ms)
{
	struct epoll_event ev = { .events = get_events(st->rq), .data.ptr = st };

	st->due_ms = clock_mono_ms() + ms;
	if (st->woken || !ms) {
		st->woken = false;
		st->state = STREAM_QUEUED;
		push(&p->ready, st);
		notify(p->work);
		return;
	}
	st->state = STREAM_WAITING;
	(void)epoll_ctl(p->epoll, EPOLL_CTL_MOD, st->rq->conn->io.fd, &ev);
	arm_source(p, st);
	if (st->due_ms < p->until_ms) {
		p->until_ms = st->due_ms;
		notify(p->wake);
	}
}

static void continue_stream(struct stream_poller *p, struct stream *st)
{
	int ms = run_step(st);

	if (ms < 0) {
		finish(p, st);
		return;
	}
	MUTEX_GUARD(&p->mutex);
	await_event(p, st, ms);
}

void stream_poller_work(struct http_server *s)
{
	struct stream_poller *p = &s->poller;
	struct stream *st;
	bool ended;

	pthread_mutex_lock(&p->mutex);
	st = pop(&p->ready);
	ended = st && st->state == STREAM_ENDED;
	if (st && !ended)
		st->state = STREAM_RUNNING;
	if (p->ready.first) /* for another thread */
		notify(p->work);
	pthread_mutex_unlock(&p->mutex);
	if (ended)
		exchange_continue(st->rq->conn);
	else if (st)
		continue_stream(p, st);
}

void stream_poller_wake(struct http_request *rq)
{
	struct stream_poller *p = &rq->server->poller;

	MUTEX_GUARD(&p->mutex);
	make_ready(p, &rq->stream_state);
}

/* ---- the poller's thread --------------------------------------------------------------------- */

static void leave_list(struct stream_poller *p, struct stream *st)
{
	*(st->prev ? &st->prev->next : &p->all) = st->next;
	if (st->next)
		st->next->prev = st->prev;
}

/* Gives the connection back to the workers, which send the rest. This needs no memory: it has never
 * left the server's set. */
static void release_ended(struct stream_poller *p)
{
	struct stream *st;

	while ((st = pop(&p->ended))) {
		struct conn *c = st->rq->conn;

		leave_list(p, st);
		/* a client that does not read gives no event */
		server_conn_set_deadline(c, 0);
		(void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, c->io.fd, NULL);
		c->state = CONN_SENDING;
		push(&p->ready, st);
		notify(p->work);
	}
}

/* When the next is due. */
static int64_t check_timers(struct stream_poller *p)
{
	int64_t now = clock_mono_ms(), next = now + IDLE_MS;

	for (struct stream *st = p->all; st; st = st->next) {
		if (st->state != STREAM_WAITING)
			continue;
		if (st->due_ms <= now)
			make_ready(p, st);
		else if (st->due_ms < next)
			next = st->due_ms;
	}
	return next;
}

static void handle_events(struct http_server *s, const struct epoll_event *events, int n)
{
	struct stream_poller *p = &s->poller;
	uint64_t count;

	MUTEX_GUARD(&p->mutex);
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr)
			make_ready(p, events[i].data.ptr);
		else
			(void)!read(p->wake, &count, sizeof(count));
	}
	release_ended(p);
	if (clock_mono_ms() >= p->until_ms)
		p->until_ms = check_timers(p);
}

static int64_t get_until(struct stream_poller *p)
{
	MUTEX_GUARD(&p->mutex);
	return p->until_ms;
}

static void *run_poller(void *arg)
{
	struct http_server *s = arg;
	struct stream_poller *p = &s->poller;
	struct epoll_event events[EVENTS];

	while (!p->stopping) {
		int64_t left = get_until(p) - clock_mono_ms();
		int n = epoll_wait(p->epoll, events, EVENTS, left > 0 ? (int)left : 0);

		handle_events(s, events, n);
	}
	return NULL;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

int stream_poller_start(struct http_server *s, struct err *err)
{
	struct stream_poller *p = &s->poller;
	struct epoll_event wake = { .events = EPOLLIN };
	struct epoll_event work = { .events = EPOLLIN | EPOLLET, .data.ptr = p };
	int r;

	p->until_ms = clock_mono_ms() + IDLE_MS;
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->work = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->epoll < 0 || p->wake < 0 || p->work < 0 ||
	    epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->wake, &wake) < 0 ||
	    epoll_ctl(s->epoll, EPOLL_CTL_ADD, p->work, &work) < 0)
		return err_sys(err, errno, "epoll");
	r = pthread_create(&p->thread, NULL, run_poller, s);
	if (r)
		return err_sys(err, r, "start the stream thread");
	p->started = true;
	return 0;
}

void stream_poller_stop(struct http_server *s)
{
	struct stream_poller *p = &s->poller;

	if (p->started) {
		p->stopping = true;
		notify(p->wake);
		pthread_join(p->thread, NULL);
		p->started = false;
	}
	for (struct stream *st = p->all; st; st = st->next)
		if (st->state != STREAM_ENDED)
			st->ops->end(st->arg);
	p->all = NULL;
	close_fd(&p->epoll);
	close_fd(&p->wake);
	close_fd(&p->work);
}

void stream_poller_add(struct conn *c)
{
	struct http_server *s = c->server;
	struct stream_poller *p = &s->poller;
	struct stream *st = &c->rq->stream_state;
	struct epoll_event none = { .events = EPOLLONESHOT, .data.ptr = st };

	c->state = CONN_STREAM;
	c->deadline_ms = 0;
	MUTEX_GUARD(&p->mutex);
	st->rq = c->rq;
	st->next = p->all;
	if (p->all)
		p->all->prev = st;
	p->all = st;
	/* without events it would go on for ever; so it ends */
	if (epoll_ctl(p->epoll, EPOLL_CTL_ADD, c->io.fd, &none) < 0 ||
	    (st->source >= 0 && epoll_ctl(p->epoll, EPOLL_CTL_ADD, st->source, &none) < 0))
		c->rq->broken = true;
	st->state = STREAM_WAITING;
	make_ready(p, st);
}
