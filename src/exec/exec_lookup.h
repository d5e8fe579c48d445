/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_EXEC_EXEC_LOOKUP_H
#define LODGE_EXEC_EXEC_LOOKUP_H

#include "exec/exec_handle.h"
#include "exec/exec_start.h"
#include "sandbox/guest_exec_sync.h"

/* One that was started before, by whichever engine; also one that ended long ago. */
int exec_open(struct engine *e, const struct caller *caller, const char *exec_id,
	      struct exec_handle **ret, struct err *err);
int exec_list(struct engine *e, const struct caller *caller, const struct session_ref *session,
	      struct store_page page, struct store_exec_list *ret, struct err *err);
/* The record now; *ret is for store_exec_fini(). */
int exec_get_info(struct exec_handle *x, struct store_exec *ret, struct err *err);

/* exec_feed_stdin() with `input` (NULL: nothing), then waits for its end and hands out both
 * streams. */
int exec_finish(struct exec_handle *x, const void *input, size_t input_len,
		struct guest_exec_output *ret, struct err *err);

#endif
