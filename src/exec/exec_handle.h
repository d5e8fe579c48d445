/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_EXEC_EXEC_HANDLE_H
#define LODGE_EXEC_EXEC_HANDLE_H

#include "machine/exec_record.h"

/* Call with machine.mutex held. deadline_ms (of clock_mono_ms()) < 0: none. False: timed out. */
bool exec_wait_change(struct exec_record *c, int64_t deadline_ms);
/* Reads from *offset and advances it. Skips discarded output; *offset then advances by more than
 * *ret. */
int exec_read_retained(struct exec_record *c, enum guest_exec_stream s, uint64_t *offset, void *buf,
		       size_t size, size_t *ret, struct err *err);

#endif
