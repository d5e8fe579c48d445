/* SPDX-License-Identifier: Apache-2.0 */
/* One thread reads the connections of all machines: output, ends of execs, ends of sandboxes. */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sandbox/agent_client.h"
#include "sandbox/sandbox.h"
#include "machine/machine_pump.h"

enum { BATCH = 64 };

uint32_t machine_pump_events(short events)
{
	return ((events & POLLIN) ? (uint32_t)EPOLLIN : 0u) |
	       ((events & POLLOUT) ? (uint32_t)EPOLLOUT : 0u);
}

static void dispatch(struct machine *v)
{
	bool died;

	pthread_mutex_lock(&v->mutex);
	died = machine_dispatch(v);
	pthread_mutex_unlock(&v->mutex);
	if (died)
		engine_wake_timers(v->engine); /* the timers seal its files */
}

/* The current batch may still refer to a removed machine: its reference is dropped between two
 * batches. */
static void drop_removed(struct engine *e)
{
	struct machine *v;

	for (;;) {
		pthread_mutex_lock(&e->mutex);
		v = e->pump.removed;
		if (v)
			e->pump.removed = v->next_removed;
		pthread_mutex_unlock(&e->mutex);
		if (!v)
			return;
		machine_unref(v);
	}
}

static void *pump(void *arg)
{
	struct engine *e = arg;
	struct epoll_event evs[BATCH];
	uint64_t count;

	for (;;) {
		int n = epoll_wait(e->pump.epoll_fd, evs, BATCH, -1);

		if (n < 0 && errno != EINTR)
			return NULL;
		for (int i = 0; i < n; i++) {
			if (evs[i].data.ptr)
				dispatch(evs[i].data.ptr);
			else
				(void)!read(e->pump.wake_fd, &count, sizeof(count));
		}
		drop_removed(e);
		if (e->pump.stopping)
			return NULL;
	}
}

int machine_pump_start(struct engine *e, struct err *err)
{
	int r;

	e->pump.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	e->pump.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->pump.epoll_fd < 0 || e->pump.wake_fd < 0 ||
	    epoll_ctl(e->pump.epoll_fd, EPOLL_CTL_ADD, e->pump.wake_fd,
		      &(struct epoll_event){ .events = EPOLLIN, .data.ptr = NULL }) < 0)
		return err_sys(err, errno, "epoll");
	r = pthread_create(&e->pump.thread, NULL, pump, e);
	if (r)
		return err_sys(err, r, "pump thread");
	e->pump.running = true;
	return 0;
}

static void wake_pump(struct engine *e)
{
	(void)!write(e->pump.wake_fd, &(uint64_t){ 1 }, sizeof(uint64_t));
}

void machine_pump_stop(struct engine *e)
{
	if (e->pump.running) {
		e->pump.stopping = true;
		wake_pump(e);
		pthread_join(e->pump.thread, NULL);
		drop_removed(e);
	}
	if (e->pump.epoll_fd >= 0)
		close(e->pump.epoll_fd);
	if (e->pump.wake_fd >= 0)
		close(e->pump.wake_fd);
}

int machine_pump_add(struct engine *e, struct machine *v, struct err *err)
{
	struct epoll_event ev = { .data.ptr = v };

	MUTEX_GUARD(&v->mutex); /* adoption may have handed ended execs to a worker */
	v->events = agent_events(sandbox_agent(v->conn));
	ev.events = machine_pump_events(v->events);
	if (epoll_ctl(e->pump.epoll_fd, EPOLL_CTL_ADD, agent_fd(sandbox_agent(v->conn)), &ev) < 0)
		return err_sys(err, errno, "epoll");
	v->refs++;
	return 0;
}

void machine_pump_remove(struct engine *e, struct machine *v)
{
	pthread_mutex_lock(&v->mutex);
	if (v->conn && !v->gone)
		(void)epoll_ctl(e->pump.epoll_fd, EPOLL_CTL_DEL, agent_fd(sandbox_agent(v->conn)),
				NULL);
	pthread_mutex_unlock(&v->mutex);
	MUTEX_GUARD(&e->mutex);
	v->next_removed = e->pump.removed;
	e->pump.removed = v;
	wake_pump(e);
}
