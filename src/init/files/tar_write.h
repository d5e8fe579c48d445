/* SPDX-License-Identifier: Apache-2.0 */
/* AGENT_JOB_TAR_OUT: the content of a directory as a pax archive, sorted by name, so that the same
 * tree always gives the same bytes. */
#ifndef LODGE_INIT_FILES_TAR_WRITE_H
#define LODGE_INIT_FILES_TAR_WRITE_H

#include "init/files/file_job_op.h"

int tar_write_run(const struct file_job *j, struct err *err);

#endif
