/* SPDX-License-Identifier: Apache-2.0 */
/* Freezes and thaws sandboxes at the request of the engine. */
#ifndef LODGE_KEEPER_SANDBOX_PAUSE_H
#define LODGE_KEEPER_SANDBOX_PAUSE_H

#include "keeper/keeper.h"

/* The record on disk stores the state, so that a later keeper knows it. */
int sandbox_pause(struct keeper *k, struct sandbox_record *sb, bool paused, struct err *err);

#endif
