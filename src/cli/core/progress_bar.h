/* SPDX-License-Identifier: Apache-2.0 */
/* A progress line on standard error, if that is a terminal. */
#ifndef LODGE_CLI_CORE_PROGRESS_BAR_H
#define LODGE_CLI_CORE_PROGRESS_BAR_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;
	int64_t total; /* -1: not known */
	uint64_t bytes;
	int64_t began_ms, drawn_ms;
	bool shown;
};

void progress_bar_begin(struct progress *p, const char *what, int64_t total, bool quiet);
/* Bytes so far. Has the type of client_request.sent. */
void progress_bar_at(void *p, uint64_t bytes);
void progress_bar_end(struct progress *p);

#endif
