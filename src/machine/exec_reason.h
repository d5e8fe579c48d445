/* SPDX-License-Identifier: Apache-2.0 */
/* Why a command ended that did not end by itself. Its record says so, because its result alone (a
 * signal, no output) looks like an ordinary one. */
#ifndef LODGE_MACHINE_EXEC_REASON_H
#define LODGE_MACHINE_EXEC_REASON_H

#include "store/record.h"

/* Sets the reason, unless there is one: the first explains the others. */
void exec_reason_set(struct store_exec *rec, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same for a command whose caller gets `why` as an error instead of a result. */
void exec_reason_set_failed_start(struct store_exec *rec, const struct err *why);
/* Of one whose start was answered with an error, and that ended by itself nevertheless. Replaces
 * the reason. */
void exec_reason_set_late_end(struct store_exec *rec);
/* The result of a command that ended with its sandbox while no engine watched. */
struct store_exec exec_end_with_sandbox(int64_t at);

#endif
