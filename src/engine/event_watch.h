/* SPDX-License-Identifier: Apache-2.0 */
/* Tells watchers that the store has new events. */
#ifndef LODGE_ENGINE_EVENT_WATCH_H
#define LODGE_ENGINE_EVENT_WATCH_H

#include <pthread.h>
#include <stdint.h>

struct engine;

struct event_watch {
	struct event_watch *prev, *next;
	void (*fn)(void *arg);
	void *arg;
};

struct event_watches {
	pthread_mutex_t mutex;
	struct event_watch *first;
	uint64_t seen; /* store_event_writes(); engine.store_mutex */
};

/* fn is called after each change of the store that may have added events, on any thread and with
 * any lock held, so it must neither block nor use the engine. */
void event_watch_add(struct engine *e, struct event_watch *w, void (*fn)(void *arg), void *arg);
/* fn is not called any more. No effect if it was not added. */
void event_watch_remove(struct engine *e, struct event_watch *w);
void event_watch_notify(struct engine *e);

#endif
