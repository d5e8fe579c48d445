/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the engine: reads one, checks it, calls its handler and sends the reply. */
#ifndef LODGE_KEEPER_DISPATCH_H
#define LODGE_KEEPER_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "keeper/keeper.h"

/* False when the engine has disconnected or does not read its replies. */
bool dispatch_one(struct keeper *k, int sock);

/* For tests: every operation of KEEPER_OPS has a handler. */
bool dispatch_has_handler(uint32_t op);

#endif
