/* SPDX-License-Identifier: Apache-2.0 */
/* Long file operations, each in a process of its own with the user's rights and nothing more. */
#ifndef LODGE_INIT_EXEC_FILE_JOB_H
#define LODGE_INIT_EXEC_FILE_JOB_H

#include "init/exec/process_table.h"

/* The descriptor, if there is one, is taken in any case. */
int job_start(uint8_t conn, const void *msg, size_t len, int fd, struct agent_started *ret,
	      struct err *err);
/* Collects what the worker said about its failure. */
void file_job_ended(struct process *r);

#endif
