/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of output rings. lodge keeps the output of running commands in memory that the memory
 * limit of their sandbox does not count, so all rings of a sandbox together have a share of their
 * own: limits_output_share(). A ring counts with its full size, from before its command starts
 * until its output is in files. */
#ifndef LODGE_MACHINE_OUTPUT_SHARE_H
#define LODGE_MACHINE_OUTPUT_SHARE_H

#include "machine/exec_record.h"

struct output_demand {
	unsigned streams; /* rings */
	uint64_t bytes; /* of each; 0: the default, less as the share is used up */
	bool exact; /* no less than that; else as much as there is */
};

/* Reserves the rings of a command that is about to start, and sets c->log_bytes to the size of
 * each. May wait a moment for rings of commands that have ended. With machine.mutex. ERR_LIMIT with
 * GUEST_EXEC_NO_OUTPUT: there is no place for them. */
int output_share_reserve(struct exec_record *c, const struct output_demand *d, struct err *err);
/* Counts the rings of c->exec, which an earlier engine made. With machine.mutex, or before another
 * thread knows the machine. */
void output_share_adopt(struct exec_record *c);
/* Frees c->exec, if any, and returns what was reserved for it. With machine.mutex. */
void output_share_free(struct exec_record *c);
/* Memory that the rings occupy now. */
uint64_t output_share_used(struct machine *v);

#endif
