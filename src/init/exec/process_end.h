/* SPDX-License-Identifier: Apache-2.0 */
/* How commands end: reaped, drained, reported. A command ends with its own process; a child that
 * keeps a pipe open delays the result by INIT_GRACE_MS at most. */
#ifndef LODGE_INIT_EXEC_PROCESS_END_H
#define LODGE_INIT_EXEC_PROCESS_END_H

#include "init/exec/process_table.h"

/* Called by the event loop. */
void process_end_reap(void);
void process_end_subreaper_ready(struct process *r);
/* Completes a process that has exited, once its output is drained or its grace period is over. */
void process_end_if_drained(struct process *r);

#endif
