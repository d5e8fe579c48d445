/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_MACHINE_MACHINE_PUMP_H
#define LODGE_MACHINE_MACHINE_PUMP_H

#include "machine/machine.h"

int machine_pump_start(struct engine *e, struct err *err);
void machine_pump_stop(struct engine *e);
int machine_pump_add(struct engine *e, struct machine *v, struct err *err);
void machine_pump_remove(struct engine *e, struct machine *v);
uint32_t machine_pump_events(short events); /* of poll(2) as those of epoll(7) */

#endif
