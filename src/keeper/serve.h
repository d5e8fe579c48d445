/* SPDX-License-Identifier: Apache-2.0 */
/* The main loop of lodge-keeper. */
#ifndef LODGE_KEEPER_SERVE_H
#define LODGE_KEEPER_SERVE_H

#include "keeper/keeper.h"

/* Serves requests until the engine disconnects or a signal arrives, then finishes pending work. */
void serve(struct keeper *k, int sock);

#endif
