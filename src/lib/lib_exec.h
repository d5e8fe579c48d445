/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_LIB_LIB_EXEC_H
#define LODGE_LIB_LIB_EXEC_H

#include "lib/lib_engine.h"
#include "exec/exec_start.h"

/* Runs a command to its end. */
int lib_put_run(struct lodge *l, const struct session_ref *ref, struct exec_opts *want,
		const void *input, size_t input_len, struct lodge_result **ret);

/* lodge_exec_wait() of version 0.1, for programs that were built with its header. */
int lodge_exec_wait_0_1(struct lodge_exec *x, int64_t timeout_ms) __asm__("lodge_exec_wait");

#endif
