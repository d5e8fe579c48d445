/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/store_lock.h"

#include "engine/internal.h"

struct store *store_lock(struct engine *e)
{
	pthread_mutex_lock(&e->store_mutex);
	return e->store;
}

void store_unlock(struct engine *e)
{
	pthread_mutex_unlock(&e->store_mutex);
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
