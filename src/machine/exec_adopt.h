/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_MACHINE_EXEC_ADOPT_H
#define LODGE_MACHINE_EXEC_ADOPT_H

#include "machine/machine.h"

/* Takes up what an earlier engine started; called before the pump has the connection. */
int exec_adopt_all(struct machine *v, struct err *err);

#endif
