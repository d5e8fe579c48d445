/* SPDX-License-Identifier: Apache-2.0 */
/* Undoes something when SIGINT, SIGQUIT, SIGTERM or SIGHUP ends the program. A thread receives the
 * signals, because a handler may not call most functions. */
#ifndef LODGE_CLI_CORE_CLEANUP_H
#define LODGE_CLI_CORE_CLEANUP_H

#include <signal.h>

#include "base/err.h"

/* SIGINT, SIGQUIT, SIGTERM and SIGHUP. */
void cleanup_signals(sigset_t *ret);

typedef void cleanup_fn(void *arg);

/* From now on these signals call fn and end the program. Replaces an earlier fn. */
int cleanup_set(cleanup_fn *fn, void *arg, struct err *err);
/* Calls fn now; a signal waits until it returns. */
void cleanup_run(void);
/* Nothing is left to undo: a signal only ends the program. */
void cleanup_clear(void);
/* Delays signals while the thing to undo is created and recorded. */
void cleanup_hold(void);
void cleanup_release(void);
/* In a child between fork and exec: unblocks these signals. */
void cleanup_child(void);

#endif
