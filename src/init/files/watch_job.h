/* SPDX-License-Identifier: Apache-2.0 */
/* AGENT_JOB_WATCH: changes in a directory as struct agent_change records, until killed. */
#ifndef LODGE_INIT_FILES_WATCH_JOB_H
#define LODGE_INIT_FILES_WATCH_JOB_H

#include "init/files/file_job_op.h"

int watch_job_run(const struct file_job *j, struct err *err);

#endif
