/* SPDX-License-Identifier: Apache-2.0 */
/* Removes trees of any depth, without following links. */
#ifndef LODGE_INIT_FILES_REMOVE_JOB_H
#define LODGE_INIT_FILES_REMOVE_JOB_H

#include "init/files/file_job_op.h"

/* `name` and everything below it; success if it does not exist. 0 or -errno. */
int remove_job_tree(int dir, const char *name);
/* Everything in the directory, but not the directory. */
int remove_job_contents(int dir);

#endif
