/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one command: start, deadline, signals, end, what it used. */
#ifndef LODGE_INIT_EXEC_PROCESS_H
#define LODGE_INIT_EXEC_PROCESS_H

#include "init/core/guest_spawn.h"
#include "init/exec/process_table.h"

struct exec_args;

/* The descriptors are taken in any case. */
int process_start(uint8_t conn, const void *msg, size_t len, int *fds, size_t nfds,
		  struct agent_started *ret, struct err *err);

/* Common to commands and jobs: a record, with the id checked; its process; from then on the loop
 * looks after it. */
struct process *process_new(uint64_t id, struct err *err);
int process_launch(struct process *r, char leaf_prefix, struct spawn *s, struct err *err);
void process_begin(struct process *r, uint32_t timeout_ms);
void process_undo(struct process *r); /* it never started */

int process_signal(struct process *r, int signo, uint32_t scope, struct err *err);
int process_resize(struct process *r, uint32_t rows, uint32_t cols, struct err *err);
void process_forget(struct process *r); /* finished ones only */

/* Called by the loop. */
void process_reap(void);
void process_shim_ready(struct process *r);
void process_output_moved(struct process *r);
void process_timers(uint64_t now_us);
uint64_t process_next_timer(void); /* microseconds, UINT64_MAX: none */

#endif
