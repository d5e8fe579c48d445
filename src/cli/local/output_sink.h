/* SPDX-License-Identifier: Apache-2.0 */
/* Standard output or error as something that never blocks: a stalled reader must not keep lodge
 * from seeing signals, and the shared file description must not be made non-blocking for others. */
#ifndef LODGE_CLI_LOCAL_OUTPUT_SINK_H
#define LODGE_CLI_LOCAL_OUTPUT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct output_sink {
	int fd; /* what to poll for POLLOUT */
	int own; /* -1, or a description of our own: close it */
	bool socket;
	size_t chunk; /* most that one write may take without blocking */
	bool dead; /* EPIPE: the reader is gone */
};

void output_sink_init(struct output_sink *s, int fd);
void output_sink_fini(struct output_sink *s);
/* Bytes taken, or -errno; -EAGAIN: poll first. */
ssize_t output_sink_write(struct output_sink *s, const void *data, size_t len);

#endif
