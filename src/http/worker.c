/* SPDX-License-Identifier: Apache-2.0 */
/* A thread needs a turn to wait for an event and to handle it. There are as many turns as
 * processors: more threads that run would only preempt each other, and the slowest requests would
 * wait for all of them. A thread that blocks must not keep its turn, so it gives it up before work
 * that may take long, and the watcher takes it from a thread that is still busy after two to four
 * milliseconds while no other thread waits for an event. */
#include "http/worker.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "http/exchange.h"
#include "http/server_conn.h"
#include "http/stream_poller.h"

enum {
	LINGER_MS = 5000, /* an idle thread ends after this time */
	SPARE = 2, /* except for the last ones */
	/* threads for what has no place: refusals, the rest of responses, urgent requests */
	EXTRA = 8,
	WATCH_MS = 2,
	WATCH_TICKS = 8, /* the watcher sleeps after so many ticks without work */
};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK_SIZE = 2 << 20 };
#else
enum { STACK_SIZE = 256 << 10 };
#endif

struct worker {
	struct http_server *server;
	struct worker *prev, *next; /* of those that handle an event and have a turn */
	bool has_turn;
	bool seen; /* by the watcher, during this event */
};

static _Thread_local struct worker *this_worker;

static void *run_worker(void *arg);

static unsigned count_processors(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;

	return n < SPARE ? SPARE : (unsigned)n;
}

/* The new thread has a turn. */
static int add_worker(struct http_server *s)
{
	struct workers *all = &s->workers;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attr, run_worker, s);
	pthread_attr_destroy(&attr);
	if (r)
		return r;
	all->count++;
	all->turns++;
	all->waiting++;
	return 0;
}

/* Some thread must wait for the next event. If there cannot be one, the event waits for the next
 * thread that is done. */
static void ensure_waiting(struct http_server *s)
{
	struct workers *all = &s->workers;

	if (all->waiting)
		return;
	if (all->turns < all->max_turns) {
		if (all->parked)
			pthread_cond_signal(&all->turn);
		else if (all->count < s->opts.max_requests + EXTRA)
			(void)add_worker(s);
	} else if (!all->watching) {
		all->watching = true;
		pthread_cond_signal(&all->watch);
	}
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void unlink_worker(struct worker *w)
{
	struct workers *all = &w->server->workers;

	*(w->prev ? &w->prev->next : &all->running) = w->next;
	if (w->next)
		w->next->prev = w->prev;
}

static void give_up_turn(struct worker *w)
{
	unlink_worker(w);
	w->has_turn = false;
	w->server->workers.turns--;
	ensure_waiting(w->server);
}

void worker_give_up_turn(void)
{
	struct worker *w = this_worker;

	if (!w)
		return;
	MUTEX_GUARD(&w->server->workers.mutex);
	if (w->has_turn)
		give_up_turn(w);
}

/* False: this thread is not needed any more. */
static bool take_turn(struct worker *w)
{
	struct workers *all = &w->server->workers;
	int64_t until;

	if (w->has_turn)
		return true;
	MUTEX_GUARD(&all->mutex);
	until = all->turns < all->max_turns ? 0 : clock_mono_ms() + LINGER_MS;
	all->parked++;
	while (all->turns >= all->max_turns && !w->server->ending &&
	       cond_wait_until(&all->turn, &all->mutex, until))
		;
	all->parked--;
	if (all->turns >= all->max_turns)
		return false;
	all->turns++;
	all->waiting++;
	w->has_turn = true;
	return true;
}

static void begin_event(struct worker *w)
{
	struct workers *all = &w->server->workers;

	MUTEX_GUARD(&all->mutex);
	all->waiting--;
	w->seen = false;
	w->prev = NULL;
	w->next = all->running;
	if (w->next)
		w->next->prev = w;
	all->running = w;
	ensure_waiting(w->server);
}

static void end_event(struct worker *w)
{
	MUTEX_GUARD(&w->server->workers.mutex);
	if (!w->has_turn)
		return;
	unlink_worker(w);
	w->server->workers.waiting++;
}

/* ---- watcher --------------------------------------------------------------------------------- */

/* Takes the turn of each thread that was busy at the last tick with the same event. */
static void free_turns(struct workers *all)
{
	struct worker *next;

	for (struct worker *w = all->running; w; w = next) {
		next = w->next;
		if (w->seen)
			give_up_turn(w);
		w->seen = true;
	}
}

static void *run_watcher(void *arg)
{
	struct http_server *s = arg;
	struct workers *all = &s->workers;
	unsigned quiet = 0;

	MUTEX_GUARD(&all->mutex);
	while (!s->ending) {
		int64_t until = clock_mono_ms() + WATCH_MS;

		if (!all->watching) {
			pthread_cond_wait(&all->watch, &all->mutex);
			continue;
		}
		while (!s->ending && cond_wait_until(&all->watch, &all->mutex, until))
			;
		quiet = all->waiting ? quiet + 1 : 0;
		if (!all->waiting)
			free_turns(all);
		all->watching = quiet < WATCH_TICKS;
	}
	return NULL;
}

/* ---- threads --------------------------------------------------------------------------------- */

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

/* False: enough others wait, and this one has ended its wait. */
static bool stay(struct worker *w)
{
	struct workers *all = &w->server->workers;

	MUTEX_GUARD(&all->mutex);
	if (all->waiting <= SPARE)
		return true;
	all->waiting--;
	all->turns--;
	w->has_turn = false;
	return false;
}

static void leave(struct worker *w)
{
	struct workers *all = &w->server->workers;

	MUTEX_GUARD(&all->mutex);
	if (w->has_turn) {
		all->waiting--;
		all->turns--;
	}
	all->count--;
	pthread_cond_broadcast(&all->end);
}

static void *run_worker(void *arg)
{
	struct http_server *s = arg;
	struct worker w = { .server = s, .has_turn = true };
	struct epoll_event ev;

	this_worker = &w;
	while (!s->ending && take_turn(&w)) {
		int n = epoll_wait(s->epoll, &ev, 1, LINGER_MS);

		if (n == 0 && !stay(&w))
			break;
		if (n <= 0 || ev.data.ptr == s) /* `s`: the end */
			continue;
		begin_event(&w);
		handle_event(s, &ev);
		end_event(&w);
	}
	leave(&w);
	this_worker = NULL;
	return NULL;
}

/* ---- start and end --------------------------------------------------------------------------- */

void worker_init_all(struct workers *all)
{
	pthread_mutex_init(&all->mutex, NULL);
	cond_init(&all->turn);
	cond_init(&all->watch);
	cond_init(&all->end);
	all->max_turns = count_processors();
}

void worker_fini_all(struct workers *all)
{
	pthread_cond_destroy(&all->end);
	pthread_cond_destroy(&all->watch);
	pthread_cond_destroy(&all->turn);
	pthread_mutex_destroy(&all->mutex);
}

int worker_start_all(struct http_server *s, struct err *err)
{
	struct workers *all = &s->workers;
	int r;

	MUTEX_GUARD(&all->mutex);
	if (all->started)
		return 0;
	r = pthread_create(&all->watcher, NULL, run_watcher, s);
	if (r)
		return err_sys(err, r, "start a thread");
	all->started = true;
	r = add_worker(s);
	return r ? err_sys(err, r, "start a thread") : 0;
}

void worker_end_all(struct http_server *s)
{
	struct workers *all = &s->workers;

	(void)!write(s->wake, &(uint64_t){ 1 }, sizeof(uint64_t));
	pthread_mutex_lock(&all->mutex);
	pthread_cond_broadcast(&all->turn);
	pthread_cond_broadcast(&all->watch);
	while (all->count)
		pthread_cond_wait(&all->end, &all->mutex);
	pthread_mutex_unlock(&all->mutex);
	if (all->started)
		pthread_join(all->watcher, NULL);
}
