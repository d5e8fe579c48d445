/* SPDX-License-Identifier: Apache-2.0 */
/* AGENT_JOB_TAR_IN: unpacks an untrusted archive into a directory, and nowhere else. */
#ifndef LODGE_INIT_FILES_TAR_READ_H
#define LODGE_INIT_FILES_TAR_READ_H

#include "init/files/file_job_op.h"

int tar_read_run(const struct file_job *j, struct err *err);

#endif
