/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a job, in its own process, which has only these descriptors. */
#ifndef LODGE_KEEPER_JOB_WORK_H
#define LODGE_KEEPER_JOB_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "keeper/helper_child.h"
#include "keeper/job_table.h"

enum { JOB_WORK_FDS_MAX = KEEPER_LAYERS_MAX + 2 };
_Static_assert((int)JOB_WORK_FDS_MAX <= (int)CHILD_FDS_MAX,
	       "a child can keep all descriptors of a job");

struct job_work {
	enum job_kind kind;
	int from[KEEPER_LAYERS_MAX]; /* directories "u", topmost first */
	size_t nfrom;
	int dest; /* the entry of the new layer; -1: none */
	int out; /* JOB_EXPORT, borrowed */
	struct storage
		*storage; /* not NULL: the new layer is a snapshot, and this is all there is */
	const char *snap_from;
	char snap_to[KEEPER_ID_SIZE + 4];
};
#define JOB_WORK_NONE                                                                              \
	{                                                                                          \
		.dest = -1, .out = -1                                                              \
	}

size_t job_work_fds(const struct job_work *w, int ret[JOB_WORK_FDS_MAX]);
void job_work_close(struct job_work *w);
/* 0 or -errno; *ret_bytes: space the layer takes, where one was made or measured. */
int job_work_do(const struct job_work *w, uint64_t *ret_bytes);

#endif
