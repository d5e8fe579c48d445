/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SERVICE_ENGINE_OPEN_H
#define LODGE_SERVICE_ENGINE_OPEN_H

#include "engine/engine.h"

/* Opens and starts an engine. A home has one engine at a time: a second one is refused with the
 * process and socket of the first. Adopts running sandboxes, and finishes or undoes what the last
 * engine left unfinished. */
int engine_open(const struct engine_opts *opts, struct engine **ret, struct err *err);
/* The same in two steps, for a program that answers requests meanwhile. The first opens the home
 * and the store; its errors are permanent. Until the engine is ready only keys, health and progress
 * may be used. */
int engine_open_store(const struct engine_opts *opts, struct engine **ret, struct err *err);
/* Sandboxes keep running. No other call may be in progress. NULL is allowed. */
void engine_close(struct engine *e);
DEFINE_AUTO(struct engine *, engine_close);

#endif
