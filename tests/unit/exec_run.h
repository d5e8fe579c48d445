/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_TESTS_EXEC_RUN_H
#define LODGE_TESTS_EXEC_RUN_H

#include "exec/exec_lookup.h"

/* Runs a command to its end; `input` may be NULL. *ret is for guest_exec_output_fini(). */
static inline int exec_run(struct engine *e, const struct caller *who,
			   const struct session_ref *ref, const struct exec_opts *opts,
			   const void *input, size_t input_len, struct guest_exec_output *ret,
			   struct err *why)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct exec_opts own = *opts;

	own.stdin_open = input != NULL;
	own.hold_output = false;
	if (exec_start(e, who, ref, &own, &x, NULL, why) < 0)
		return -1;
	return exec_finish(x, input, input_len, ret, why);
}

#endif
