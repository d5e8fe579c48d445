/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input of commands. Bytes that the pipe does not take at once are queued, one message per
 * command, and the reply is sent when all are written. */
#ifndef LODGE_INIT_EXEC_PROCESS_STDIN_H
#define LODGE_INIT_EXEC_PROCESS_STDIN_H

#include "init/exec/process_table.h"

/* 1: written, reply now. 0: queued, the reply follows when reply_due is set. -1: refused. */
int process_stdin_write(struct process *r, uint8_t conn, uint32_t req, const struct agent_stdin *m,
			const char *bytes, struct err *err);
void process_stdin_ready(struct process *r);
/* The command has ended. */
void process_stdin_close(struct process *r);
/* The connection that waits for the reply is gone. Queued bytes are still written. */
void process_stdin_forget_conn(struct process *r, uint8_t conn);

#endif
