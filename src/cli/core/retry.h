/* SPDX-License-Identifier: Apache-2.0 */
/* Retries while lodged is unreachable, with growing pauses. */
#ifndef LODGE_CLI_CORE_RETRY_H
#define LODGE_CLI_CORE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct retry { /* zeros: connected */
	int64_t since_ms; /* when the connection was lost; 0: connected */
	int pause_ms;
	bool reported; /* the loss was printed */
	bool raw; /* the terminal is raw: lines end with \r\n */
};

/* Whether the error is temporary. */
bool retry_is_worth(const struct err *err);
/* Milliseconds to wait now; -1: give up. Prints the error the first time. */
int retry_pause(struct retry *r, const struct err *err);
/* Connected again. */
void retry_over(struct retry *r);

#endif
