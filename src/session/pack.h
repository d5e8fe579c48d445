/* SPDX-License-Identifier: Apache-2.0 */
/* lodge-zstd beside us, between two descriptors: whatever an archive holds is unpacked where it can
 * do nothing. */
#ifndef LODGE_SESSION_PACK_H
#define LODGE_SESSION_PACK_H

#include <stdbool.h>

#include "base/err.h"

struct pack {
	int pidfd; /* -1: none runs */
	int says; /* what it writes to its standard error */
};
#define PACK_NONE                                                                                  \
	{                                                                                          \
		-1, -1                                                                             \
	}

/* From `in` to `out`, both borrowed; neither may be non-blocking. program NULL: the one that
 * belongs to us. */
int pack_start(struct pack *p, const char *program, bool back, int in, int out, struct err *err);
/* Waits for its end. ERR_INVALID: the input is not what it should be. */
int pack_end(struct pack *p, struct err *err);
/* Ends it now, if it still runs. */
void pack_kill(struct pack *p);

#endif
