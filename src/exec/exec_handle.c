/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on a handle: wait, read output, write input, signal. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "exec/exec_handle.h"
#include "machine/exec_record.h"
#include "machine/exec_record_output.h"
#include "machine/machine_watch.h"
#include "session/session.h"
#include "sandbox/guest_exec_log.h"

enum {
	STDIN_POLL_MIN_MS = 1,
	STDIN_POLL_MAX_MS = 16,
};

void exec_close(struct exec_handle *x)
{
	if (x)
		exec_record_close(x);
}

const char *exec_get_id(const struct exec_handle *x)
{
	return x->record->rec.id;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static int64_t deadline_of(int64_t wait_ms)
{
	return wait_ms < 0 ? -1 : clock_mono_ms() + wait_ms;
}

/* Nothing more happens: the command has ended, or the engine shuts down. */
static bool is_final(const struct exec_record *c)
{
	return c->ended || !c->exec;
}

/* lodge-init would have started it, or ended it by its time limit, but does not respond. */
static bool is_overdue(const struct exec_record *c)
{
	if (is_final(c) || !c->machine->stalled)
		return false;
	return !c->started ||
	       (c->timeout_ms && engine_now(c->engine) >= c->rec.started_at + c->timeout_ms);
}

static int fail_wait(struct exec_record *c, struct err *err)
{
	if (is_final(c))
		return err_set(err, ERR_UNAVAILABLE, "the engine is shutting down");
	if (is_overdue(c)) {
		(void)machine_fail_stalled(c->machine, err);
		return c->started ? -1 : err_ctx(err, "the command may still start");
	}
	return err_set(err, ERR_TIMEOUT, "command %s is still running", c->rec.id);
}

bool exec_has_ended(struct exec_handle *x)
{
	EXEC_RECORD_GUARD(x->record);
	return x->record->ended;
}

int exec_wait(struct exec_handle *x, int64_t timeout_ms, struct err *err)
{
	struct exec_record *c = x->record;
	int64_t deadline = deadline_of(timeout_ms);
	int r;

	exec_record_lock(c);
	while (!is_final(c) && !is_overdue(c) && exec_record_wait(c, deadline))
		;
	r = c->ended ? 0 : fail_wait(c, err);
	exec_record_unlock(c);
	if (r < 0)
		return -1;
	if (c->machine && c->engine->opts.no_threads)
		exec_write_ended(c->engine, true); /* no worker does it */
	return 0;
}

void exec_notify(struct exec_handle *x, void (*fn)(void *arg), void *arg)
{
	EXEC_RECORD_GUARD(x->record);
	x->notify = fn;
	x->notify_arg = arg;
}

/* ---- output --------------------------------------------------------------------------------- */

void exec_output_range(struct exec_handle *x, enum guest_exec_stream s, uint64_t *ret_start,
		       uint64_t *ret_end)
{
	EXEC_RECORD_GUARD(x->record);
	exec_record_output_range(x->record, s, ret_start, ret_end);
}

static int output_discarded(uint64_t start, struct err *err)
{
	err_set(err, ERR_LIMIT, "output before offset %llu was discarded (limit: output_bytes)",
		(unsigned long long)start);
	err->sys = ERANGE;
	return -1;
}

int exec_read(struct exec_handle *x, enum guest_exec_stream s, uint64_t offset, void *buf,
	      size_t size, int64_t wait_ms, size_t *ret, struct err *err)
{
	struct exec_record *c = x->record;
	int64_t deadline = deadline_of(wait_ms);
	uint64_t start, end, at = offset;
	size_t n;

	exec_record_lock(c);
	exec_record_output_range(c, s, &start, &end);
	while (offset >= end && wait_ms && !is_final(c) && exec_record_wait(c, deadline))
		exec_record_output_range(c, s, &start, &end);
	exec_record_unlock(c);
	if (exec_record_output_read(c, s, &at, buf, size, &n, err) < 0)
		return -1;
	if (at - n != offset && at > offset) /* discarded, or overwritten during the read */
		return output_discarded(at - n, err);
	*ret = n;
	return 0;
}

int exec_consumed(struct exec_handle *x, uint64_t out, uint64_t err_offset, struct err *err)
{
	struct exec_record *c = x->record;

	EXEC_RECORD_GUARD(c);
	x->consumed[GUEST_EXEC_OUT] = out;
	x->consumed[GUEST_EXEC_ERR] = err_offset;
	return x->holds && !is_final(c) ? exec_record_consumed(c, err) : 0;
}

void exec_hold_output(struct exec_handle *x, uint64_t out, uint64_t err_offset)
{
	struct exec_record *c = x->record;
	struct err ignored;

	EXEC_RECORD_GUARD(c);
	x->holds = out != UINT64_MAX || err_offset != UINT64_MAX;
	x->consumed[GUEST_EXEC_OUT] = out;
	x->consumed[GUEST_EXEC_ERR] = err_offset;
	if (!is_final(c) && x->holds) {
		guest_exec_hold(c->exec);
		c->holds = true;
	} else if (!is_final(c)) {
		(void)exec_record_consumed(c, &ignored);
	}
}

static bool has_more(const struct exec_record *c, uint64_t out, uint64_t err_offset)
{
	uint64_t start, out_end, err_end;

	exec_record_output_range(c, GUEST_EXEC_OUT, &start, &out_end);
	exec_record_output_range(c, GUEST_EXEC_ERR, &start, &err_end);
	return out_end > out || err_end > err_offset;
}

int exec_wait_output(struct exec_handle *x, uint64_t out, uint64_t err_offset, int64_t wait_ms)
{
	struct exec_record *c = x->record;
	int64_t deadline = deadline_of(wait_ms);

	EXEC_RECORD_GUARD(c);
	while (!has_more(c, out, err_offset) && !is_final(c) && exec_record_wait(c, deadline))
		;
	return has_more(c, out, err_offset);
}

/* ---- control -------------------------------------------------------------------------------- */

/* Any use unpauses the session. */
static int unpause_session(struct exec_record *c, struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;
	auto_fini(store_session_fini) struct store_session s = { 0 };

	if (!c->machine || !session_copy_record(c->engine, c->rec.session, &s) || !s.paused)
		return 0;
	if (session_lock(c->engine, NULL, c->rec.session, &n, err) < 0)
		return -1;
	return session_thaw(n, "lodge", err);
}

/* Call with machine.mutex held. */
static int check_running(const struct exec_record *c, struct err *err)
{
	if (c->ended)
		return err_set(err, ERR_CONFLICT, "command %s has ended", c->rec.id);
	if (!c->exec || c->machine->gone)
		return err_set(err, ERR_UNAVAILABLE, "the sandbox of command %s has ended",
			       c->rec.id);
	return c->machine->stalled ? machine_fail_stalled(c->machine, err) : 0;
}

int exec_signal(struct exec_handle *x, int signo, enum agent_scope scope, struct err *err)
{
	struct exec_record *c = x->record;
	int r;

	if (signo < 1 || signo > SIGRTMAX)
		return err_set(err, ERR_INVALID, "signal: unknown signal %d", signo);
	if (unpause_session(c, err) < 0)
		return -1;
	EXEC_RECORD_GUARD(c);
	if (check_running(c, err) < 0)
		return -1;
	r = guest_exec_signal(c->exec, signo, scope, err);
	machine_update_poll(c->machine);
	return r;
}

int exec_resize(struct exec_handle *x, uint32_t rows, uint32_t cols, struct err *err)
{
	struct exec_record *c = x->record;
	int r;

	if (unpause_session(c, err) < 0)
		return -1;
	EXEC_RECORD_GUARD(c);
	if (check_running(c, err) < 0)
		return -1;
	r = guest_exec_resize(c->exec, rows, cols, err);
	machine_update_poll(c->machine);
	return r;
}

/* Call with machine.mutex held. Waits until the command has read the last input. lodge-init does
 * not report that, so this polls with a growing interval. */
static int wait_stdin_read(struct exec_handle *x, struct err *err)
{
	struct exec_record *c = x->record;
	int64_t pause = STDIN_POLL_MIN_MS;
	int r;

	while ((r = check_running(c, err)) == 0 && guest_exec_stdin_is_busy(c->exec)) {
		if (x->cancel && x->cancel(x->cancel_arg))
			return err_set(err, ERR_UNAVAILABLE, "command %s has not read its input",
				       c->rec.id);
		(void)exec_record_wait(c, clock_mono_ms() + pause);
		pause = pause * 2 < STDIN_POLL_MAX_MS ? pause * 2 : STDIN_POLL_MAX_MS;
	}
	return r;
}

static int write_chunk(struct exec_handle *x, const char *data, size_t len, bool eof,
		       struct err *err)
{
	struct exec_record *c = x->record;

	if (wait_stdin_read(x, err) < 0 || guest_exec_stdin(c->exec, data, len, eof, err) < 0)
		return -1;
	machine_update_poll(c->machine);
	if (eof && !len)
		return 0; /* nothing to wait for */
	if (wait_stdin_read(x, err) < 0)
		return c->ended ? 0 : -1; /* it received the input and ended */
	if (!eof && guest_exec_stdin_is_closed(c->exec))
		return err_set(err, ERR_CONFLICT,
			       "cannot write to command %s: it has closed its input", c->rec.id);
	return 0;
}

void exec_set_cancel(struct exec_handle *x, bool (*fn)(void *arg), void *arg)
{
	x->cancel = fn;
	x->cancel_arg = arg;
}

int exec_offer_stdin(struct exec_handle *x, const void *data, size_t len, size_t *ret,
		     struct err *err)
{
	struct exec_record *c = x->record;
	size_t n = len < AGENT_DATA_MAX ? len : AGENT_DATA_MAX;
	int r = 0;

	if (unpause_session(c, err) < 0)
		return -1;
	EXEC_RECORD_GUARD(c);
	if (check_running(c, err) < 0)
		return -1;
	if (!n || guest_exec_stdin_is_busy(c->exec))
		n = 0;
	else
		r = guest_exec_stdin(c->exec, data, n, false, err);
	if (r == 0)
		*ret = n;
	machine_update_poll(c->machine);
	return r;
}

int exec_write_stdin(struct exec_handle *x, const void *data, size_t len, bool eof, struct err *err)
{
	struct exec_record *c = x->record;
	size_t at = 0, n;
	int r = 0;

	if (unpause_session(c, err) < 0)
		return -1;
	EXEC_RECORD_GUARD(c);
	do {
		n = len - at < AGENT_DATA_MAX ? len - at : AGENT_DATA_MAX;
		if (n || eof)
			r = write_chunk(x, (const char *)data + at, n, eof && at + n == len, err);
		at += n;
	} while (r == 0 && at < len);
	return r;
}

int exec_feed_stdin(struct exec_handle *x, const void *input, size_t len, bool eof, struct err *err)
{
	if (!x->created || exec_write_stdin(x, input, len, eof, err) == 0 ||
	    err->code == ERR_CONFLICT)
		return 0;
	return -1;
}
