/* SPDX-License-Identifier: Apache-2.0 */
/* One cgroup per command below BOOT_FD_CGROUP, so that everything a command started can be found
 * and ended at once, wherever it went. */
#ifndef LODGE_INIT_EXEC_EXEC_CGROUP_H
#define LODGE_INIT_EXEC_EXEC_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct exec_cgroup {
	char name[24]; /* "" if there is none */
};

/* An open directory for CLONE_INTO_CGROUP, or -1. `prefix` tells commands from spare shells. */
int exec_cgroup_make(struct exec_cgroup *l, char prefix, uint64_t id, struct err *err);
/* Every process inside gets the signal; > 0 if there was one, -errno on failure. */
int exec_cgroup_signal(const struct exec_cgroup *l, int signo);
/* Of a counter in a "name value" file; UINT64_MAX if it is not there. */
uint64_t exec_cgroup_counter(const struct exec_cgroup *l, const char *file, const char *name);
/* Removes it now or, while processes are left in it, at a later exec_cgroup_sweep(). */
void exec_cgroup_drop(struct exec_cgroup *l);
void exec_cgroup_sweep(void);
/* Keeps it, for signals to those left, while there are any. */
void exec_cgroup_drop_if_empty(struct exec_cgroup *l);

/* Processes the kernel has killed for want of memory, by the nearest counter there is, and forks
 * it has refused; 0 where nobody counts. */
uint64_t exec_cgroup_oom_kills(const struct exec_cgroup *l);
uint64_t exec_cgroup_forks_refused(void);

#endif
