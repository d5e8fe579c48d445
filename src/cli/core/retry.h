/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that is away for a moment: asked again, later and later, until it is back. */
#ifndef LODGE_CLI_CORE_RETRY_H
#define LODGE_CLI_CORE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct retry { /* of zeros: all is well */
	int64_t since_ms; /* when it went away; 0: it is there */
	int pause_ms;
	bool told; /* that it is away */
	bool raw; /* so is the terminal: lines end with both characters */
};

/* Whether err is of those that pass. */
bool retry_is_worth(const struct err *err);
/* What to wait for now; -1: it was away for too long. Says so the first time. */
int retry_pause(struct retry *r, const struct err *err);
/* It answers. */
void retry_over(struct retry *r);

#endif
