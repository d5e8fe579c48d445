/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SERVICE_TIMERS_H
#define LODGE_SERVICE_TIMERS_H

#include "engine/engine.h"

int timers_start(struct engine *e, struct err *err);
void timers_stop(struct engine *e);
/* Removes unreferenced layers, and flattens deep stacks; returns how many layers it removed. */
int timers_collect(struct engine *e);
/* Runs all timers once: deadlines, lost sandboxes, unfinished removals, unreferenced layers. Safe
 * at any time, from any thread. Returns how many sessions it changed. */
int engine_run_timers(struct engine *e);

#endif
