/* SPDX-License-Identifier: Apache-2.0 */
/* All descendants of a process, by the parent that /proc shows for every process. */
#ifndef LODGE_INIT_EXEC_PROCESS_TREE_H
#define LODGE_INIT_EXEC_PROCESS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Signals every descendant of `root`, but not `root`. Returns how many there were, or -errno. */
int process_tree_signal(pid_t root, int signo);
/* Kills the children of lodge-init that is_known() does not know, and their descendants. */
void process_tree_kill_strays(bool (*is_known)(pid_t pid));
/* Kills every process that exists but is hidden in /proc: the last resort when a tree has no
 * visible process left and still does not end. */
void process_tree_kill_hidden(bool (*is_ours)(pid_t pid));

#endif
