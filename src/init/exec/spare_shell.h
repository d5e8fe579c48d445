/* SPDX-License-Identifier: Apache-2.0 */
/* The used_spare_shell shell: one bash started ahead, waiting for its text. */
#ifndef LODGE_INIT_EXEC_SPARE_SHELL_H
#define LODGE_INIT_EXEC_SPARE_SHELL_H

#include "init/exec/process_args.h"
#include "init/exec/process_table.h"

/* AGENT_SPARE_SHELL: from now on keep one ready for this user, environment and directory. */
int spare_shell_set(const void *msg, size_t len, struct err *err);
/* 1 and the record has the shell's process, pipes and leaf; 0: start one of its own. */
uint32_t spare_shell_take(struct process *r, const struct exec_args *c);
/* The next one may be started; done by spare_shell_now() when the answers are out. */
void spare_shell_later(void);
void spare_shell_now(void);
uint64_t spare_shell_next_timer(void);
bool spare_shell_reaped(pid_t pid);
bool spare_shell_is(pid_t pid);

#endif
