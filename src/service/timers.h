/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SERVICE_TIMERS_H
#define LODGE_SERVICE_TIMERS_H

#include "engine/internal.h"

int sweep_start(struct engine *e, struct err *err);
void sweep_stop(struct engine *e);

#endif
