/* SPDX-License-Identifier: Apache-2.0 */
/* What must not stay behind when a signal ends the program: SIGINT, SIGQUIT, SIGTERM and
 * SIGHUP come to a thread of their own, which may do what no handler could. */
#ifndef LODGE_CLI_CORE_CLEANUP_H
#define LODGE_CLI_CORE_CLEANUP_H

#include "base/err.h"

typedef void cleanup_fn(void *arg);

/* From now on these signals call fn and end the program; one at a time. */
int cleanup_set(cleanup_fn *fn, void *arg, struct err *err);
/* Calls fn now, if nobody did: a signal meanwhile waits for it. */
void cleanup_run(void);
/* There is nothing to undo any more: nothing is left for a signal but the end. */
void cleanup_clear(void);
/* While held, a signal waits: around what makes the thing and notes its name. */
void cleanup_hold(void);
void cleanup_release(void);
/* For children between fork and exec: they get these signals as usual. */
void cleanup_child(void);

#endif
