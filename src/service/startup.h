/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SERVICE_STARTUP_H
#define LODGE_SERVICE_STARTUP_H

#include "engine/internal.h"

/* Told to whoever listens; `failed` NULL: it is under way. */
void start_stage(struct engine *e, enum start_stage stage, const struct err *failed);
int start_now(struct engine *e, struct err *err);
void start_stop(struct engine *e);

#endif
