/* SPDX-License-Identifier: Apache-2.0 */
/* Output: from the command's pipes into the rings of its logs. */
#ifndef LODGE_INIT_EXEC_OUTPUT_PUMP_H
#define LODGE_INIT_EXEC_OUTPUT_PUMP_H

#include "init/exec/process_table.h"

/* Checks and prepares the logs; the descriptors are the record's afterwards. */
int pump_open(struct rec *r, const int *logs, int nlogs, uint64_t log_bytes, struct err *err);
/* Starts to listen to pipe `i`. */
void pump_watch(struct rec *r, int i);
/* Moves what is there, within the room the readers leave. */
void pump_ready(struct rec *r, int i);
/* Everything that is in the pipes now; false if a full ring stopped it. */
bool pump_drain(struct rec *r);
/* What the command itself wrote: everything up to now, noted at its end. */
void pump_note_owed(struct rec *r);
bool pump_owes_nothing(const struct rec *r);
/* A reader consumed, came or went: what had to wait may go on. */
void pump_readers_changed(struct rec *r);
bool pump_at_end(const struct rec *r);
/* Pipes and logs. Until then the logs are there to be handed to another engine. */
void pump_close(struct rec *r);
/* Room for what a new command will write: if those that ended hold too much, they lose their
 * logs, the first to have ended first. */
void pump_trim(void);
void pump_progress(const struct rec *r, struct agent_progress *ret);

#endif
