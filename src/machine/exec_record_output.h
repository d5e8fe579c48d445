/* SPDX-License-Identifier: Apache-2.0 */
/* The retained output of an exec, wherever it is: in the log of lodge-init, or in a file after the
 * end. */
#ifndef LODGE_MACHINE_EXEC_RECORD_OUTPUT_H
#define LODGE_MACHINE_EXEC_RECORD_OUTPUT_H

#include "machine/exec_record.h"

/* With machine.mutex. */
void exec_record_output_range(const struct exec_record *c, enum guest_exec_stream s,
			      uint64_t *ret_start, uint64_t *ret_end);
/* Reads from *offset and advances it. Skips discarded output; *offset then advances by more than
 * *ret. */
int exec_record_output_read(struct exec_record *c, enum guest_exec_stream s, uint64_t *offset,
			    void *buf, size_t size, size_t *ret, struct err *err);

#endif
