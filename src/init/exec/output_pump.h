/* SPDX-License-Identifier: Apache-2.0 */
/* Output: from the command's pipes into the rings of its logs. */
#ifndef LODGE_INIT_EXEC_OUTPUT_PUMP_H
#define LODGE_INIT_EXEC_OUTPUT_PUMP_H

#include "init/exec/process_table.h"

/* Checks and prepares the logs; the descriptors are the record's afterwards. */
int output_pump_open(struct process *r, const int *logs, int nlogs, uint64_t log_bytes,
		     struct err *err);
/* Starts to listen to pipe `i`. */
void output_pump_watch(struct process *r, int i);
/* Moves what is there, within the room the readers leave. */
void output_pump_ready(struct process *r, int i);
/* Everything that is in the pipes now; false if a full ring stopped it. */
bool output_pump_drain(struct process *r);
/* What the command itself wrote: everything up to now, noted at its end. */
void output_pump_note_owed(struct process *r);
bool output_pump_owes_nothing(const struct process *r);
/* A reader consumed, came or went: what had to wait may go on. */
void output_pump_readers_changed(struct process *r);
bool output_pump_at_end(const struct process *r);
/* Pipes and logs. Until then the logs are there to be handed to another engine. */
void output_pump_close(struct process *r);
/* Room for what a new command will write: if those that ended hold too much, they lose their
 * logs, the first to have ended first. */
void output_pump_trim(void);
void output_pump_progress(const struct process *r, struct agent_progress *ret);

#endif
