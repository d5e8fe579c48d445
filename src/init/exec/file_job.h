/* SPDX-License-Identifier: Apache-2.0 */
/* File jobs: long file operations, each in a worker process with the rights of the user. */
#ifndef LODGE_INIT_EXEC_FILE_JOB_H
#define LODGE_INIT_EXEC_FILE_JOB_H

#include "init/exec/process_table.h"

/* Takes the descriptor, if there is one, in any case. NULL on failure. */
struct process *file_job_start(uint8_t conn, const void *msg, size_t len, int fd, struct err *err);
/* Reads the error of a worker that failed. */
void file_job_ended(struct process *r);

#endif
