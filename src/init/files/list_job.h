/* SPDX-License-Identifier: Apache-2.0 */
/* AGENT_JOB_LIST: struct agent_entry records, each directory before its content. */
#ifndef LODGE_INIT_FILES_LIST_JOB_H
#define LODGE_INIT_FILES_LIST_JOB_H

#include "init/files/file_job_op.h"

int list_job_run(const struct file_job *j, struct err *err);

#endif
