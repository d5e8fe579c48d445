/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_MACHINE_EXEC_OUTPUT_FILE_H
#define LODGE_MACHINE_EXEC_OUTPUT_FILE_H

#include "machine/exec_record.h"
#include "machine/machine.h"

/* Removes all saved output of a session. */
void exec_output_remove(struct engine *e, const char *session);
void exec_output_prune(struct engine *e, int64_t before);

/* Creates the directory for the output of this session. */
int exec_output_prepare(struct engine *e, const char *session, struct err *err);
/* Saves both streams of an ended exec; nothing if its session is gone. */
int exec_output_save(struct exec_record *c, struct err *err);
/* Opens the saved output, as c->output. */
void exec_output_open(struct exec_record *c);
void exec_output_close(struct exec_record *c);

#endif
