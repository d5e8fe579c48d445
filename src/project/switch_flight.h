/* SPDX-License-Identifier: Apache-2.0 */
/* Switches of one user queue. A caller that asks for what the last one in the queue asked for
 * shares its result: nothing else was asked for in between. */
#ifndef LODGE_PROJECT_SWITCH_FLIGHT_H
#define LODGE_PROJECT_SWITCH_FLIGHT_H

#include "admit/user_queue.h"
#include "project/project_switch.h"

struct switch_flight;

/* 1: the caller waited for the head of the queue and runs the switch; it hands *ret_flight to
 * switch_flight_finish(), with the ticket. 0: *ret is the result of another caller. -1: error, of
 * another caller or because the queue is full. */
int switch_flight_join(struct engine *e, const struct caller *caller,
		       const struct switch_opts *opts, struct user_queue_ticket *ticket,
		       struct switch_flight **ret_flight, struct switch_result *ret,
		       struct err *err);
/* Before the leader leaves the queue. Those that share get the result, or the error if r is -1. */
void switch_flight_finish(struct engine *e, struct switch_flight *f, int r,
			  const struct switch_result *result, const struct err *err);

#endif
