/* SPDX-License-Identifier: Apache-2.0 */
/* The space of the disk below the data directory. When it runs out, new sessions and snapshots are
 * refused early, while there is still space for the records of what runs; reading, deleting and
 * hibernating go on. */
#ifndef LODGE_ENGINE_DISK_SPACE_H
#define LODGE_ENGINE_DISK_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/keeper_proto.h"

struct engine;

enum disk_state {
	DISK_OK,
	DISK_FULL,
	DISK_FAILED, /* the volume cannot be written to */
};

struct disk_space { /* engine.mutex */
	struct keeper_disk last; /* all 0: not known yet */
	enum disk_state state;
};

const char *disk_state_name(enum disk_state s);
/* Asks the keeper, for a second at most; the timers do so every second. */
void disk_space_poll(struct engine *e);
/* The same without the keeper, which knows more. */
void disk_space_poll_host(struct engine *e);
void disk_space_get(struct engine *e, struct disk_space *ret);
/* Before anything new is stored: 0, or -1 with ERR_LIMIT and ENOSPC. */
int disk_space_check(struct engine *e, struct err *err);
enum { DISK_TEXT = 200 };
/* What is wrong, as a sentence; empty if nothing is. `full`: with the numbers of the host. */
void disk_space_describe(const struct disk_space *d, bool full, char ret[DISK_TEXT]);

#endif
