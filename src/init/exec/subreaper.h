/* SPDX-License-Identifier: Apache-2.0 */
/* Where there is no cgroup, a command runs below a process of ours that adopts its orphans: all it
 * ever started stays a descendant of the shim and can be found. */
#ifndef LODGE_INIT_EXEC_SUBREAPER_H
#define LODGE_INIT_EXEC_SUBREAPER_H

#include "init/core/guest_spawn.h"

enum shim_kind { SHIM_STARTED = 1, SHIM_FAILED, SHIM_ENDED };

struct subreaper_report {
	uint32_t kind;
	int32_t pid, step, error, status;
	uint32_t pad;
	uint64_t cpu_us, max_rss_bytes;
};

/* The pid of the command, or -1 as guest_spawn_program(). *ret_shim and *ret_fd, on which one
 * SHIM_ENDED will come, are the caller's. */
pid_t subreaper_start(struct spawn *s, pid_t *ret_shim, int *ret_fd);
/* 1 and a report, 0 if there is none yet, -1 if the shim is gone. */
int subreaper_read(int fd, struct subreaper_report *ret);

/* The signal to every descendant of `root`, but not to it; how many there were, or -errno. */
int process_tree_signal(pid_t root, int signo);
/* SIGKILL to our own children that nobody knows, and to what is below them. */
void process_tree_kill_strays(bool (*is_known)(pid_t pid));
/* SIGKILL to everything that is there but cannot be seen: the last means when a tree is not gone
 * although all of it that can be seen is. */
void process_tree_kill_hidden(bool (*is_ours)(pid_t pid));

#endif
