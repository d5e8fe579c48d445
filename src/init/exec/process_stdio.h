/* SPDX-License-Identifier: Apache-2.0 */
/* The three standard descriptors of a command and lodge-init's ends of them. */
#ifndef LODGE_INIT_EXEC_PROCESS_STDIO_H
#define LODGE_INIT_EXEC_PROCESS_STDIO_H

#include "init/core/guest_spawn.h"
#include "init/exec/process_table.h"

/* Opens what `m` asks for: s->stdio, and our ends in the record, which owns them also on failure.
 * The user owns pipes and terminals, so that the command can open /dev/stdout again. */
int process_stdio_open(struct process *r, struct spawn *s, const struct agent_exec *m,
		       struct err *err);
void process_stdio_close_child(struct spawn *s);

#endif
