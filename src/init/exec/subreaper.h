/* SPDX-License-Identifier: Apache-2.0 */
/* Without a cgroup, a command runs below a subreaper: a process of lodge-init that adopts the
 * command's orphans, so that every descendant stays in one tree and can be found. */
#ifndef LODGE_INIT_EXEC_SUBREAPER_H
#define LODGE_INIT_EXEC_SUBREAPER_H

#include <sys/resource.h>

#include "init/core/guest_spawn.h"

enum subreaper_event { SUBREAPER_STARTED = 1, SUBREAPER_FAILED, SUBREAPER_ENDED };

struct subreaper_report {
	uint32_t kind;
	int32_t pid, step, error, status;
	struct rusage usage;
};

/* The pid of the command, or -1 as guest_spawn_program(). The caller owns *ret_subreaper and
 * *ret_fd, which delivers one SUBREAPER_ENDED. */
pid_t subreaper_start(struct spawn *s, pid_t *ret_subreaper, int *ret_fd);
/* 1 and a report, 0 if there is none yet, -1 if the subreaper is gone. */
int subreaper_read(int fd, struct subreaper_report *ret);

#endif
