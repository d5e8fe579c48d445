/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_SERVICE_STARTUP_H
#define LODGE_SERVICE_STARTUP_H

#include "engine/engine.h"

enum startup_stage { STARTUP_STORE = 1, STARTUP_KEEPER, STARTUP_ADOPT, STARTUP_READY };

/* Reports the stage to all subscribers; `failed` NULL: in progress. */
void startup_report(struct engine *e, enum startup_stage stage, const struct err *failed);
int startup_run(struct engine *e, struct err *err);
void startup_stop(struct engine *e);

/* The second step after engine_open_store(): starts the keeper and adopts sandboxes, on a thread.
 * It retries failures that may pass, with growing pauses, or soon while a caller waits. Calls
 * fn(arg) on that thread after each try: err NULL: ready; else the error, and milliseconds until
 * the next try, 0: none. */
int engine_start(struct engine *e, engine_ready_fn *fn, void *arg, struct err *err);
bool engine_is_ready(struct engine *e);
/* Waits until it is ready. Errors have sys EINPROGRESS and a message with the stage: ERR_TIMEOUT:
 * not yet, though it may have failed and be retried; ERR_UNAVAILABLE: it failed for good, or too
 * many callers wait. */
int engine_wait_ready(struct engine *e, int64_t wait_ms, struct err *err);
/* Callers that wait until it is ready. */
unsigned engine_waiting(struct engine *e);
/* Why the last try to start that failed did; false: none did. */
bool engine_start_error(struct engine *e, struct err *ret, unsigned *ret_tries);

#endif
