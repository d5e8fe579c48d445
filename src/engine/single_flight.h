/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_ENGINE_SINGLE_FLIGHT_H
#define LODGE_ENGINE_SINGLE_FLIGHT_H

#include "engine/internal.h"

/* ---- single flight --------------------------------------------------------------------------- */
/* True: the caller leads and must call single_flight_finish(). False: it waited, and *ret_r, ret,
 * err are the leader's. */
bool single_flight_join(struct engine *e, const char *name, struct session_enter_result *ret,
			int *ret_r, struct err *err);
void single_flight_finish(struct engine *e, const char *name, int r,
			  const struct session_enter_result *res, const struct err *err);
/* Only one at a time has this name. */
void name_lock(struct engine *e, const char *name);
void name_unlock(struct engine *e, const char *name);

#endif
