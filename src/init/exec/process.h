/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one command: start, deadline, signals, end, what it used. */
#ifndef LODGE_INIT_EXEC_PROCESS_H
#define LODGE_INIT_EXEC_PROCESS_H

#include "init/core/guest_spawn.h"
#include "init/exec/process_table.h"

struct command;

/* The descriptors are taken in any case. */
int exec_start(uint8_t conn, const void *msg, size_t len, int *fds, size_t nfds,
	       struct agent_started *ret, struct err *err);

/* Common to commands and jobs: a record, with the id checked; its process; from then on the loop
 * looks after it. */
struct rec *exec_new(uint64_t id, struct err *err);
int exec_launch(struct rec *r, char leaf_prefix, struct spawn *s, struct err *err);
void exec_begin(struct rec *r, uint32_t timeout_ms);
void exec_undo(struct rec *r); /* it never started */

int exec_signal(struct rec *r, int signo, uint32_t scope, struct err *err);
int exec_resize(struct rec *r, uint32_t rows, uint32_t cols, struct err *err);
void exec_forget(struct rec *r); /* finished ones only */

/* Called by the loop. */
void exec_reap(void);
void exec_shim_ready(struct rec *r);
void exec_output_moved(struct rec *r);
void exec_timers(uint64_t now_us);
uint64_t exec_next_timer(void); /* microseconds, UINT64_MAX: none */

#endif
