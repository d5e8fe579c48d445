/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/event_watch.h"

#include "engine/internal.h"

void event_watch_add(struct engine *e, struct event_watch *w, void (*fn)(void *arg), void *arg)
{
	struct event_watches *all = &e->event_watches;

	MUTEX_GUARD(&all->mutex);
	*w = (struct event_watch){ .next = all->first, .fn = fn, .arg = arg };
	if (w->next)
		w->next->prev = w;
	all->first = w;
}

void event_watch_remove(struct engine *e, struct event_watch *w)
{
	struct event_watches *all = &e->event_watches;

	MUTEX_GUARD(&all->mutex);
	if (!w->fn)
		return;
	*(w->prev ? &w->prev->next : &all->first) = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->fn = NULL;
}

void event_watch_notify(struct engine *e)
{
	MUTEX_GUARD(&e->event_watches.mutex);
	for (const struct event_watch *w = e->event_watches.first; w; w = w->next)
		w->fn(w->arg);
}
