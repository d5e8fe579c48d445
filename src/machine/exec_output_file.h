/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_MACHINE_EXEC_OUTPUT_FILE_H
#define LODGE_MACHINE_EXEC_OUTPUT_FILE_H

#include "machine/exec_record.h"
#include "engine/internal.h"

/* The output kept of a session's commands goes. */
void runs_forget(struct engine *e, const char *session);
void runs_prune(struct engine *e, int64_t before);

/* Where the output of this session's commands goes; made before there is any. */
int output_prepare(struct engine *e, const char *session, struct err *err);
/* Both streams of an ended command. Nothing is made for one whose session is gone. */
int output_save(struct command *c, struct err *err);
/* What was kept of them, into c->kept. */
void output_open(struct command *c);
void output_close(struct command *c);

#endif
