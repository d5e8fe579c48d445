/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/store_lock.h"

#include "base/clock.h"
#include "engine/internal.h"

enum { CALL_MAX_MS = 5000 };

struct store *store_lock(struct engine *e)
{
	pthread_mutex_lock(&e->store_mutex);
	e->store_locked_at = clock_mono_ms();
	return e->store;
}

void store_unlock(struct engine *e)
{
	uint64_t events = store_event_writes(e->store);
	bool news = events != e->event_watches.seen;

	e->event_watches.seen = events;
	e->store_locked_at = 0;
	pthread_mutex_unlock(&e->store_mutex);
	if (news)
		event_watch_notify(e);
}

struct store *store_lock_relaxed(struct engine *e, bool relaxed)
{
	struct store *st = store_lock(e);

	if (relaxed)
		store_relax(st, true);
	return st;
}

void store_unlock_relaxed(struct engine *e, bool relaxed)
{
	if (relaxed)
		store_relax(e->store, false);
	store_unlock(e);
}

bool store_responds(struct engine *e)
{
	struct err ignored;
	int64_t last;
	bool works;

	if (pthread_mutex_trylock(&e->store_mutex) != 0) {
		int64_t since = e->store_locked_at;

		return !since || clock_mono_ms() - since < CALL_MAX_MS;
	}
	e->store_locked_at = clock_mono_ms();
	works = store_event_last(e->store, &last, &ignored) == 0;
	store_unlock(e);
	return works;
}
