/* SPDX-License-Identifier: Apache-2.0 */
/* Takes over running sandboxes of an earlier keeper and removes everything else it left. */
#ifndef LODGE_KEEPER_SANDBOX_ADOPT_H
#define LODGE_KEEPER_SANDBOX_ADOPT_H

#include "keeper/keeper.h"

int sandbox_adopt_all(struct keeper *k, struct err *err);
/* Ends the sandboxes of one-shot keepers that died before they could clean up. `own`: the name of
 * the caller's state directory. */
void sandbox_adopt_sweep_oneshots(struct keeper *k, const char *own);

#endif
