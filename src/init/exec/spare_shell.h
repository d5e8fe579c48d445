/* SPDX-License-Identifier: Apache-2.0 */
/* The armed shell: one bash started ahead, waiting for its text. */
#ifndef LODGE_INIT_EXEC_SPARE_SHELL_H
#define LODGE_INIT_EXEC_SPARE_SHELL_H

#include "init/exec/exec_args.h"
#include "init/exec/process_table.h"

/* AGENT_ARM: from now on keep one ready for this user, environment and directory. */
int arm_set(const void *msg, size_t len, struct err *err);
/* 1 and the record has the shell's process, pipes and leaf; 0: start one of its own. */
uint32_t arm_take(struct rec *r, const struct command *c);
/* The next one may be started; done by arm_now() when the answers are out. */
void arm_later(void);
void arm_now(void);
uint64_t arm_next_timer(void);
bool arm_reaped(pid_t pid);
bool arm_is(pid_t pid);

#endif
