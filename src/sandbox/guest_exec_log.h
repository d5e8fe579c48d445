/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a command, read from its logs. */
#ifndef LODGE_SANDBOX_GUEST_EXEC_LOG_H
#define LODGE_SANDBOX_GUEST_EXEC_LOG_H

#include "sandbox/guest_exec.h"

/* [guest_exec_start_offset, guest_exec_end) of the stream can be read; older output was dropped. */
uint64_t guest_exec_start_offset(const struct guest_exec *x, enum guest_exec_stream s);
uint64_t guest_exec_end(const struct guest_exec *x, enum guest_exec_stream s);
/* Reads up to size bytes from *offset. If those bytes were dropped, *offset first moves to the
 * oldest available one. 0: nothing (yet). -errno if the log cannot be read. */
ssize_t guest_exec_read(struct guest_exec *x, enum guest_exec_stream s, uint64_t *offset, void *buf,
			size_t size);
/* Writes the available output of an ended command to a regular file and truncates the file to it.
 * The file begins at stream offset guest_exec_end() - its size, which is guest_exec_start_offset()
 * unless a surviving child keeps writing. Does not sync. After the end of the command this and
 * guest_exec_read() do not change x, so they need no lock against each other. */
int guest_exec_save(const struct guest_exec *x, enum guest_exec_stream s, int fd, struct err *err);

/* Writes a line to stderr (with one log: to that) of an exec that has ended without having run. */
void guest_exec_put_line(struct guest_exec *x, const char *line);

/* Of all logs: the sizes of their rings, and the memory that they occupy now. */
uint64_t guest_exec_log_total(const struct guest_exec *x);
uint64_t guest_exec_log_used(const struct guest_exec *x);

/* The size of a log for `wanted` bytes (0: the default), and a new log. */
uint64_t guest_exec_log_size(uint64_t wanted);
int guest_exec_log_new(uint64_t log_bytes, struct err *err);

#endif
