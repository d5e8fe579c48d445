/* SPDX-License-Identifier: Apache-2.0 */
/* One cgroup per command below BOOT_FD_CGROUP, so that all descendants of a command can be found
 * and killed at once, even those that left its session. */
#ifndef LODGE_INIT_EXEC_EXEC_CGROUP_H
#define LODGE_INIT_EXEC_EXEC_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct exec_cgroup {
	char name[24]; /* "" if there is none */
};

/* An open directory for CLONE_INTO_CGROUP, or -1. `prefix` separates commands from spare shells. */
int exec_cgroup_make(struct exec_cgroup *cg, char prefix, uint64_t id, struct err *err);
/* Signals every process in it; > 0 if there was one, -errno on failure. */
int exec_cgroup_signal(const struct exec_cgroup *cg, int signo);
/* A counter of a file of "name value" lines; UINT64_MAX if it does not exist. */
uint64_t exec_cgroup_counter(const struct exec_cgroup *cg, const char *file, const char *name);
/* Removes it now or, while it has processes, in a later exec_cgroup_sweep(). */
void exec_cgroup_drop(struct exec_cgroup *cg);
void exec_cgroup_sweep(void);
/* Keeps it while it has processes, so that they can be signalled. */
void exec_cgroup_drop_if_empty(struct exec_cgroup *cg);

/* OOM kills and refused forks in the whole sandbox; 0 without a counter. */
uint64_t exec_cgroup_oom_kills(void);
uint64_t exec_cgroup_forks_refused(void);
/* Whether the kernel killed a process of this command. A cgroup that counts memory (v2) knows; else
 * every kill in the sandbox since `before`, exec_cgroup_oom_kills() at the start, counts. */
bool exec_cgroup_oom_killed(const struct exec_cgroup *cg, uint64_t before);

#endif
