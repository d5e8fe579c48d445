/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_MACHINE_MACHINE_PUMP_H
#define LODGE_MACHINE_MACHINE_PUMP_H

#include "machine/machine.h"

/* What the sandbox said goes to those who wait for it. True: that was its end. With machine.mutex.
 */
bool machine_dispatch(struct machine *v);
void machine_update_poll(struct machine *v); /* after anything was sent; with machine.mutex */
int machine_pump_start(struct engine *e, struct err *err);
void machine_pump_stop(struct engine *e);
int machine_pump_add(struct engine *e, struct machine *v, struct err *err);
void machine_pump_remove(struct engine *e, struct machine *v);

#endif
