/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine_metrics.h"

#include "engine/internal.h"

const struct engine_metrics *engine_metrics(const struct engine *e)
{
	return &e->metrics;
}

void engine_pool_state(struct engine *e, struct keeper_pool_state *ret)
{
	keeper_conn_pool(e, ret);
}
