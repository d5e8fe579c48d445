/* SPDX-License-Identifier: Apache-2.0 */
/* The request of a file job. The operations (list_job.h, remove_job.h, tar_read.h, tar_write.h,
 * watch_job.h) run in a worker process as the user. They may allocate, within the limits of the
 * sandbox, and return -1 with the reason. */
#ifndef LODGE_INIT_FILES_FILE_JOB_OP_H
#define LODGE_INIT_FILES_FILE_JOB_OP_H

#include <limits.h>
#include <stdio.h>

#include "init/core/init_state.h"

enum {
	FILE_JOB_FD = 3, /* the job's input or output */
	FILE_JOB_ERROR_FD, /* takes a struct file_job_error */
	FILE_JOB_DEPTH_MAX = 256, /* nested directories */
	FILE_JOB_PATH_SIZE = FILE_JOB_DEPTH_MAX * (NAME_MAX + 1),
};

struct file_job_error {
	int32_t sys;
	uint32_t code;
	char msg[256];
};

struct file_job {
	struct agent_job m;
	char path[AGENT_PATH_MAX];
};

#endif
