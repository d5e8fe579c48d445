/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SERVICE_ENGINE_OPTS_H
#define LODGE_SERVICE_ENGINE_OPTS_H

#include "engine/engine.h"

/* Fills in the defaults. ERR_INVALID names the option, or the setting of lodged, that is above its
 * bound. A default is lowered to its maximum instead. */
int engine_opts_resolve(struct engine_opts *o, struct err *err);
/* ERR_INVALID if `ms` exceeds max_ms; the message names both. */
int engine_opts_check_time(const char *name, int64_t ms, const char *max_name, int64_t max_ms,
			   struct err *err);

#endif
