/* SPDX-License-Identifier: Apache-2.0 */
/* What runs in the worker processes: each function does one job as the user it became, may
 * allocate (the sandbox's own limits hold for it) and says why it failed. */
#ifndef LODGE_INIT_FILES_FILE_JOB_OP_H
#define LODGE_INIT_FILES_FILE_JOB_OP_H

#include <limits.h>
#include <stdio.h>

#include "init/core/init_state.h"

enum {
	WORKER_FD = 3, /* where it reads or writes */
	WORKER_ERROR_FD, /* where it leaves a struct worker_error */
	WORKER_DEPTH = 256, /* directories below each other */
	WORKER_PATH_SIZE = WORKER_DEPTH * (NAME_MAX + 1),
};

struct worker_error {
	int32_t sys;
	uint32_t code;
	char msg[256];
};

struct worker_job {
	struct agent_job m;
	char path[AGENT_PATH_MAX];
};

int worker_list(const struct worker_job *j, struct err *err);
int worker_remove(const struct worker_job *j, struct err *err);
int worker_tar_out(const struct worker_job *j, struct err *err);
int worker_tar_in(const struct worker_job *j, struct err *err);
int worker_watch(const struct worker_job *j, struct err *err);

/* Everything below `name` and itself; missing is success. 0 or -errno. */
int remove_tree(int dir, const char *name);
/* Everything in the directory, but not itself. */
int remove_inside(int dir);

#endif
