/* SPDX-License-Identifier: Apache-2.0 */
/* One command: start, signals, end, deadline. A command ends with its own process; a child that
 * keeps a pipe open delays the result by INIT_GRACE_MS at most. */
#ifndef LODGE_INIT_EXEC_PROCESS_H
#define LODGE_INIT_EXEC_PROCESS_H

#include "init/core/guest_spawn.h"
#include "init/exec/process_table.h"

/* AGENT_EXEC. Takes the descriptors in any case. */
int process_start(uint8_t conn, const void *msg, size_t len, int *fds, size_t nfds,
		  struct agent_started *ret, struct err *err);

/* For commands and file jobs: a record with a new id; its process; then its timers and events. */
struct process *process_new(uint64_t id, struct err *err);
int process_launch(struct process *r, char cgroup_prefix, struct spawn *s, struct err *err);
void process_activate(struct process *r, uint32_t timeout_ms);
/* Frees a record whose process never started or has ended. Orphans keep running, but nothing
 * reports on them any more. */
void process_release(struct process *r);

int process_signal(struct process *r, int signo, uint32_t scope, struct err *err);
int process_resize(struct process *r, uint32_t rows, uint32_t cols, struct err *err);

/* Completes a process that has exited, once its output is drained or its grace period is over. */
void process_end_if_drained(struct process *r);

/* Called by the event loop. */
void process_reap(void);
void process_subreaper_ready(struct process *r);
void process_run_timers(uint64_t now_us);
uint64_t process_next_timer(void); /* microseconds, UINT64_MAX: none */

#endif
