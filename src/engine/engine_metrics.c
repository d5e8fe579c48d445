/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine_metrics.h"

#include "engine/internal.h"

const struct engine_metrics *engine_metrics(const struct engine *e)
{
	return &e->metrics;
}

/* With a minimum of 0 the keeper reports its pool but does not refill it. */
void engine_pool_state(struct engine *e, struct keeper_pool_state *ret)
{
	struct keeper_pool same = keeper_conn_pool_opts(e);
	struct keeper_pool_state now = { 0 };
	struct err ignored;
	int r = -1;

	same.min = 0;
	if (e->opts.pool && pthread_mutex_trylock(&e->keeper.mutex) == 0) {
		if (e->keeper.client && !keeper_client_is_dead(e->keeper.client))
			r = keeper_client_pool(e->keeper.client, same, &now, &ignored);
		pthread_mutex_unlock(&e->keeper.mutex);
	}
	MUTEX_GUARD(&e->mutex);
	if (r == 0)
		e->keeper.pool = now;
	*ret = e->keeper.pool;
}
