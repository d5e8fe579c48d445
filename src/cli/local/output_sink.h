/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to standard output or error without blocking, so that a stalled reader cannot keep lodge
 * from handling signals. O_NONBLOCK cannot be set: other processes share the file description. */
#ifndef LODGE_CLI_LOCAL_OUTPUT_SINK_H
#define LODGE_CLI_LOCAL_OUTPUT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct output_sink {
	int fd; /* what to poll for POLLOUT */
	int own; /* a file description of its own; -1: none */
	bool socket;
	size_t chunk; /* maximum that one write takes without blocking */
	bool dead; /* EPIPE: the reader closed it */
};

void output_sink_init(struct output_sink *s, int fd);
void output_sink_fini(struct output_sink *s);
/* Bytes taken, or -errno; -EAGAIN: poll first. */
ssize_t output_sink_write(struct output_sink *s, const void *data, size_t len);

#endif
