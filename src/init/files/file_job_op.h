/* SPDX-License-Identifier: Apache-2.0 */
/* File jobs: their request, and one row per operation. The operations run in a worker process as
 * the user. They may allocate, within the limits of the sandbox, and return -1 with the reason. */
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

/* clang-format off */
#define FILE_JOBS(X) \
	/* struct agent_entry records, each directory before its content */ \
	X(LIST, list_job_run, "(list)") \
	/* a whole tree of any depth, without following links */ \
	X(REMOVE, remove_job_run, "(remove)") \
	/* the content of a directory as a pax archive, sorted by name, so that the same tree always \
	 * gives the same bytes */ \
	X(TAR_OUT, tar_write_run, "(tar out)") \
	/* unpacks an untrusted archive into a directory, and nowhere else */ \
	X(TAR_IN, tar_read_run, "(tar in)") \
	/* changes in a directory as struct agent_change records, until killed */ \
	X(WATCH, watch_job_run, "(watch)")

#define FILE_JOB_RUN(op, fn, name) int fn(const struct file_job *j, struct err *err);
FILE_JOBS(FILE_JOB_RUN)
/* clang-format on */

#endif
