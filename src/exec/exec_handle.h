/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LODGE_EXEC_EXEC_HANDLE_H
#define LODGE_EXEC_EXEC_HANDLE_H

#include "engine/engine.h"
#include "machine/exec.h"
#include "sandbox/guest_exec.h"

void exec_close(struct exec_handle *x); /* the exec keeps running; NULL is allowed */
DEFINE_AUTO(struct exec_handle *, exec_close);
const char *exec_get_id(const struct exec_handle *x);
/* Until it ended; timeout_ms < 0: as long as it takes. ERR_TIMEOUT leaves it running. */
int exec_wait(struct exec_handle *x, int64_t timeout_ms, struct err *err);
bool exec_has_ended(struct exec_handle *x);

/* [*ret_start, *ret_end) of the stream can be read. */
void exec_output_range(struct exec_handle *x, enum guest_exec_stream s, uint64_t *ret_start,
		       uint64_t *ret_end);
/* Reads bytes from `offset`, and waits up to wait_ms for the first. 0: none (yet, or no more
 * when exec_has_ended()). An offset that is no longer retained is ERR_LIMIT with sys ERANGE. */
int exec_read(struct exec_handle *x, enum guest_exec_stream s, uint64_t offset, void *buf,
	      size_t size, int64_t wait_ms, size_t *ret, struct err *err);
/* From now on a full log also waits for the reader of this handle, which has read up to these
 * offsets. UINT64_MAX: not in this stream; in both: no longer. Bytes that were dropped before
 * stay lost. */
void exec_hold_output(struct exec_handle *x, uint64_t out, uint64_t err_offset);
int exec_consumed(struct exec_handle *x, uint64_t out, uint64_t err_offset, struct err *err);
/* Waits until there is more than these offsets, it ended, or the time is over. */
int exec_wait_output(struct exec_handle *x, uint64_t out, uint64_t err_offset, int64_t wait_ms);
/* fn(arg) from another thread whenever output or the end came; NULL: no more. Must not block nor
 * call back into the engine. */
void exec_notify(struct exec_handle *x, void (*fn)(void *arg), void *arg);

/* Waits until the process has read all of it. */
int exec_write_stdin(struct exec_handle *x, const void *data, size_t len, bool eof,
		     struct err *err);
/* Asked now and then while exec_write_stdin() waits: true ends it with ERR_UNAVAILABLE. Must not
 * block nor call back into the engine. */
void exec_set_cancel(struct exec_handle *x, bool (*fn)(void *arg), void *arg);
/* exec_write_stdin() as the first input, unless an earlier use of the idempotency key fed it. An
 * exec that does not read all of it is no error. */
int exec_feed_stdin(struct exec_handle *x, const void *input, size_t len, bool eof,
		    struct err *err);
/* Without waiting: *ret bytes were accepted. 0: the earlier ones are still in flight. There is
 * no notification, so try again after a moment. */
int exec_offer_stdin(struct exec_handle *x, const void *data, size_t len, size_t *ret,
		     struct err *err);
int exec_signal(struct exec_handle *x, int signo, enum agent_scope scope, struct err *err);
int exec_resize(struct exec_handle *x, uint32_t rows, uint32_t cols, struct err *err);

#endif
