/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SERVICE_STARTUP_H
#define LODGE_SERVICE_STARTUP_H

#include "engine/internal.h"

enum startup_stage { STARTUP_STORE = 1, STARTUP_KEEPER, STARTUP_ADOPT, STARTUP_READY };

/* Reports the stage to all subscribers; `failed` NULL: in progress. */
void startup_report(struct engine *e, enum startup_stage stage, const struct err *failed);
int startup_run(struct engine *e, struct err *err);
void startup_stop(struct engine *e);

#endif
