/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_EXEC_EXEC_HANDLE_H
#define LODGE_EXEC_EXEC_HANDLE_H

#include "machine/exec_record.h"

/* With machine.mutex; < 0 deadline_ms (of clock_mono_ms()): as long as it takes. False: time is
 * over.
 */
bool exec_record_wait(struct exec_record *c, int64_t deadline_ms);
/* Bytes from *offset on, which moves behind them. What is not kept any more is skipped: *offset is
 * then further on than *ret. */
int exec_record_read(struct exec_record *c, enum guest_exec_stream s, uint64_t *offset, void *buf,
		     size_t size, size_t *ret, struct err *err);

#endif
