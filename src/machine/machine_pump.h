/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_MACHINE_MACHINE_PUMP_H
#define LODGE_MACHINE_MACHINE_PUMP_H

#include "engine/internal.h"

/* What the sandbox said goes to those who wait for it. True: that was its end. With live.mutex. */
bool live_hear(struct live *v);
void live_rearm(struct live *v); /* after anything was sent; with live.mutex */
int pump_start(struct engine *e, struct err *err);
void pump_stop(struct engine *e);
int pump_add(struct engine *e, struct live *v, struct err *err);
void pump_remove(struct engine *e, struct live *v);

#endif
