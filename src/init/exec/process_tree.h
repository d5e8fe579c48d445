/* SPDX-License-Identifier: Apache-2.0 */
/* Commands without a cgroup. Each runs below a subreaper: a process of lodge-init that adopts the
 * command's orphans, so that every descendant stays in one tree and can be found by the parent that
 * /proc shows for every process. */
#ifndef LODGE_INIT_EXEC_PROCESS_TREE_H
#define LODGE_INIT_EXEC_PROCESS_TREE_H

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
pid_t process_tree_start(struct spawn *s, pid_t *ret_subreaper, int *ret_fd);
/* 1 and a report, 0 if there is none yet, -1 if the subreaper is gone. */
int process_tree_read_report(int fd, struct subreaper_report *ret);

/* Signals every descendant of `root`, but not `root`. Returns how many there were, or -errno. */
int process_tree_signal(pid_t root, int signo);
/* Kills the children of lodge-init that is_known() does not know, and their descendants. */
void process_tree_kill_strays(bool (*is_known)(pid_t pid));
/* Kills every process that exists but is hidden in /proc: the last resort when a tree has no
 * visible process left and still does not end. */
void process_tree_kill_hidden(bool (*is_ours)(pid_t pid));

#endif
