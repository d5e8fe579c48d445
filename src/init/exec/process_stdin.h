/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input of commands: what the pipe does not take at once waits here, one message per
 * command, and is answered when it is in. */
#ifndef LODGE_INIT_EXEC_PROCESS_STDIN_H
#define LODGE_INIT_EXEC_PROCESS_STDIN_H

#include "init/exec/process_table.h"

/* 1: taken, answer now. 0: the answer follows through input.answered. -1: refused. */
int exec_stdin_put(struct process *r, uint8_t conn, uint32_t req, const struct agent_stdin *m,
		   const char *bytes, struct err *err);
void exec_stdin_ready(struct process *r);
/* The end of the command, or of the one who waits for the answer. */
void exec_stdin_close(struct process *r);
void exec_stdin_forget_conn(struct process *r, uint8_t conn);

#endif
