/* SPDX-License-Identifier: Apache-2.0 */
/* One cgroup per command below BOOT_FD_CGROUP, so that everything a command started can be found
 * and ended at once, wherever it went. */
#ifndef LODGE_INIT_EXEC_EXEC_CGROUP_H
#define LODGE_INIT_EXEC_EXEC_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct leaf {
	char name[24]; /* "" if there is none */
};

/* An open directory for CLONE_INTO_CGROUP, or -1. `prefix` tells commands from spare shells. */
int leaf_make(struct leaf *l, char prefix, uint64_t id, struct err *err);
/* Every process inside gets the signal; > 0 if there was one, -errno on failure. */
int leaf_signal(const struct leaf *l, int signo);
bool leaf_is_populated(const struct leaf *l);
/* Of a counter in a "name value" file; UINT64_MAX if it is not there. */
uint64_t leaf_counter(const struct leaf *l, const char *file, const char *name);
/* Removes it now or, while processes are left in it, at a later leaf_sweep(). */
void leaf_drop(struct leaf *l);
void leaf_sweep(void);
/* Keeps it, for signals to those left, while there are any. */
void leaf_drop_if_empty(struct leaf *l);

/* Processes the kernel has killed for want of memory, by the nearest counter there is, and forks
 * it has refused; 0 where nobody counts. */
uint64_t leaf_oom_kills(const struct leaf *l);
uint64_t leaf_forks_refused(void);

#endif
