/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_ENGINE_SINGLE_FLIGHT_H
#define LODGE_ENGINE_SINGLE_FLIGHT_H

#include "engine/internal.h"

/* ---- single flight --------------------------------------------------------------------------- */
/* True: the caller leads and must call flight_land(). False: it waited, and *ret_r, ret, err are
 * the leader's. */
bool flight_board(struct engine *e, const char *name, struct session_entered *ret, int *ret_r,
		  struct err *err);
void flight_land(struct engine *e, const char *name, int r, const struct session_entered *res,
		 const struct err *err);
/* Only one at a time has this name. */
void turn_take(struct engine *e, const char *name);
void turn_give(struct engine *e, const char *name);

#endif
