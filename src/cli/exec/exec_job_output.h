/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the output of a command, every byte exactly once. */
#ifndef LODGE_CLI_EXEC_EXEC_JOB_OUTPUT_H
#define LODGE_CLI_EXEC_EXEC_JOB_OUTPUT_H

#include "cli/exec/exec_job.h"

/* Starts it, forwards signals and with `input` standard input, and reads its output to the end: as
 * a stream, and by offsets after that breaks. */
int exec_job_stream(struct exec_job *j, json_t *body, bool input, struct err *err);
/* Reads from j->at on; without `wait` only what exists. Sets j->end when the command ended. */
int exec_job_follow(struct exec_job *j, bool wait, struct err *err);
/* Of the collected output, only the last j->tail lines of each stream: the rest is dropped, or
 * these are written too. */
void exec_job_cut_tail(struct exec_job *j);
int exec_job_write_tail(struct exec_job *j, struct err *err);

#endif
