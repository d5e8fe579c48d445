/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of /health about the start and the keeper. */
#ifndef LODGE_API_CORE_HEALTH_H
#define LODGE_API_CORE_HEALTH_H

#include "api/core/api_call.h"

struct engine_health;

/* "starting", "ok", "degraded", "failing". */
const char *health_status(struct engine *e, const struct engine_health *h);
/* "stage", "message", "step", "total_steps" of the start. */
void health_put_stage(struct engine *e, struct json_out *j);
/* "starting": progress, last error and waiting requests; null once started. */
void health_put_start(struct engine *e, struct json_out *j);
/* "error" of a part that is not ok. */
void health_put_error(struct json_out *j, bool ok, const char *error);

#endif
