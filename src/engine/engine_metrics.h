/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the engine, over all surfaces. */
#ifndef LODGE_ENGINE_ENGINE_METRICS_H
#define LODGE_ENGINE_ENGINE_METRICS_H

#include <stdatomic.h>

#include "base/histogram.h"
#include "engine/engine.h"

struct engine_metrics {
	atomic_ullong entered[SESSION_REPLACED + 1]; /* by enum session_outcome */
	struct histogram started[SESSION_SOURCE_FORK + 1]; /* sandboxes, by enum session_source */
	struct histogram probe; /* probes that were sent, whatever their result */
};
const struct engine_metrics *engine_metrics(const struct engine *e);

/* State of the pool of ready sandboxes. Starts nothing: while the keeper is busy or stopped, its
 * last report. */
void engine_pool_state(struct engine *e, struct keeper_pool_state *ret);

#endif
