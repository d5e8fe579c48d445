/* SPDX-License-Identifier: Apache-2.0 */
/* One session_enter() at a time for the same keys; callers that come meanwhile share its result,
 * as one that they found. */
#ifndef LODGE_SESSION_SINGLE_FLIGHT_H
#define LODGE_SESSION_SINGLE_FLIGHT_H

#include "session/session.h"

struct single_flight;

/* True: the caller leads, and hands *ret_flight (NULL without memory) to single_flight_finish().
 * False: the call waited for its leader, and *ret_r, *ret and *err are the leader's. */
bool single_flight_join(struct engine *e, const char *name, struct single_flight **ret_flight,
			struct session_enter_result *ret, int *ret_r, struct err *err);
void single_flight_finish(struct engine *e, struct single_flight *f, int r,
			  const struct session_enter_result *res, const struct err *err);

#endif
