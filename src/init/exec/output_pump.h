/* SPDX-License-Identifier: Apache-2.0 */
/* Output: from the pipes of a command into the rings of its logs. */
#ifndef LODGE_INIT_EXEC_OUTPUT_PUMP_H
#define LODGE_INIT_EXEC_OUTPUT_PUMP_H

#include "init/exec/process_table.h"

/* Checks and initializes the logs; the record owns the descriptors afterwards. */
int output_pump_open(struct process *r, const int *logs, int nlogs, uint64_t log_bytes,
		     struct err *err);
/* Adds the pipes to the event loop. */
void output_pump_watch(struct process *r);
/* Moves what pipe `i` holds, as far as attached readers leave space in the ring. */
void output_pump_ready(struct process *r, int i);
/* Moves what the pipes hold now. False: a full ring stopped it. */
bool output_pump_drain(struct process *r);
/* At the exit of the command: everything in the pipes now is its own output. */
void output_pump_mark_end(struct process *r);
/* All output up to output_pump_mark_end() is in the logs. */
bool output_pump_is_drained(const struct process *r);
/* A reader consumed, attached or detached: blocked output may continue. */
void output_pump_readers_changed(struct process *r);
bool output_pump_at_end(const struct process *r);
/* Closes pipes and logs. Until then another engine can get the logs. */
void output_pump_close(struct process *r);
/* Before a command starts: if ended commands keep too much output, drops their logs, oldest first.
 */
void output_pump_trim(void);
void output_pump_progress(const struct process *r, struct agent_progress *ret);

#endif
