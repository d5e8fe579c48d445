/* SPDX-License-Identifier: Apache-2.0 */
/* The spare shell: one bash started in advance, waiting for its text. */
#ifndef LODGE_INIT_EXEC_SPARE_SHELL_H
#define LODGE_INIT_EXEC_SPARE_SHELL_H

#include "init/exec/process_args.h"
#include "init/exec/process_table.h"

/* AGENT_SPARE_SHELL: keep one ready for this user, environment and directory. */
int spare_shell_set(const void *msg, size_t len, struct err *err);
/* True if the record now has the spare shell's process, pipes and cgroup. */
bool spare_shell_take(struct process *r, const struct process_args *c);
/* Schedules the next one; spare_shell_start_if_due() starts it after the replies are sent. */
void spare_shell_schedule(void);
/* Replaces the one that waits, if any. */
void spare_shell_restart(void);
void spare_shell_start_if_due(void);
uint64_t spare_shell_next_timer(void);
bool spare_shell_handle_exit(pid_t pid);
bool spare_shell_owns_pid(pid_t pid);

#endif
