/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with a handle: waiting, reading, feeding, signalling. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "machine/exec_record.h"
#include "exec/exec_handle.h"
#include "machine/machine_pump.h"
#include "session/change.h"
#include "session/session.h"

enum {
	READ_MAX = 256 * 1024, /* copied at once with live.mutex */
	FED_MIN_MS = 1, /* how often to look whether input was taken */
	FED_MAX_MS = 16,
};

const char *run_id(const struct run *x)
{
	return x->command->rec.id;
}

/* ---- waiting -------------------------------------------------------------------------------- */

bool command_wait(struct command *c, int64_t deadline_ms)
{
	struct timespec until = { .tv_sec = deadline_ms / 1000,
				  .tv_nsec = deadline_ms % 1000 * 1000000 };
	int r;

	c->live->nstreams++;
	r = deadline_ms < 0 ? pthread_cond_wait(&c->moved, &c->live->mutex)
			    : pthread_cond_timedwait(&c->moved, &c->live->mutex, &until);
	c->live->nstreams--;
	return r != ETIMEDOUT;
}

static int64_t deadline_of(int64_t wait_ms)
{
	return wait_ms < 0 ? -1 : mono_ms() + wait_ms;
}

/* One that will not move any more: over, or given up because the engine closes. */
static bool is_over(const struct command *c)
{
	return c->ended || !c->exec;
}

bool run_ended(struct run *x)
{
	bool ended;

	command_lock(x->command);
	ended = x->command->ended;
	command_unlock(x->command);
	return ended;
}

int run_wait(struct run *x, int64_t timeout_ms, struct err *err)
{
	struct command *c = x->command;
	int64_t deadline = deadline_of(timeout_ms);
	bool ended, over;

	command_lock(c);
	while (!is_over(c) && command_wait(c, deadline))
		;
	ended = c->ended;
	over = is_over(c);
	command_unlock(c);
	if (!ended)
		return over ? err_set(err, ERR_UNAVAILABLE, "the engine is closing")
			    : err_set(err, ERR_TIMEOUT, "command %s is still running", run_id(x));
	if (c->live && c->engine->opts.no_threads)
		runs_drain(c->engine); /* nobody else will */
	return 0;
}

void run_notify(struct run *x, void (*fn)(void *arg), void *arg)
{
	command_lock(x->command);
	x->notify = fn;
	x->notify_arg = arg;
	command_unlock(x->command);
}

/* ---- output --------------------------------------------------------------------------------- */

void command_range(const struct command *c, enum exec_stream s, uint64_t *ret_start,
		   uint64_t *ret_end)
{
	uint64_t size = c->kept[s].size, total;

	if (c->exec) {
		*ret_start = exec_start_offset(c->exec, s);
		*ret_end = exec_end(c->exec, s);
		return;
	}
	total = (uint64_t)(s == EXEC_OUT ? c->rec.stdout_bytes : c->rec.stderr_bytes);
	*ret_end = total > size ? total : size;
	*ret_start = *ret_end - size;
}

void run_range(struct run *x, enum exec_stream s, uint64_t *ret_start, uint64_t *ret_end)
{
	command_lock(x->command);
	command_range(x->command, s, ret_start, ret_end);
	command_unlock(x->command);
}

static int not_kept(uint64_t start, struct err *err)
{
	err_set(err, ERR_LIMIT, "output before offset %llu is not kept any more",
		(unsigned long long)start);
	err->sys = ERANGE;
	return -1;
}

static int read_file(const struct output *o, uint64_t at, void *buf, size_t size, size_t *ret,
		     struct err *err)
{
	ssize_t n;

	if (size > o->size - at)
		size = (size_t)(o->size - at);
	do
		n = pread(o->fd, buf, size, (off_t)at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, errno, "kept output");
	*ret = (size_t)n;
	return 0;
}

int command_read(struct command *c, enum exec_stream s, uint64_t *offset, void *buf, size_t size,
		 size_t *ret, struct err *err)
{
	uint64_t start, end;
	bool in_file;
	ssize_t n = 0;

	command_lock(c);
	command_range(c, s, &start, &end);
	in_file = !c->exec;
	if (!in_file)
		n = exec_read(c->exec, s, offset, buf, size < READ_MAX ? size : READ_MAX);
	command_unlock(c);
	*ret = n > 0 ? (size_t)n : 0;
	if (n < 0)
		return err_sys(err, (int)-n, "output");
	if (!in_file)
		return 0;
	if (*offset < start)
		*offset = start;
	if (*offset >= end)
		return 0;
	/* the file is nobody's to change any more */
	if (read_file(&c->kept[s], *offset - start, buf, size, ret, err) < 0)
		return -1;
	*offset += *ret;
	return 0;
}

int run_read(struct run *x, enum exec_stream s, uint64_t offset, void *buf, size_t size,
	     int64_t wait_ms, size_t *ret, struct err *err)
{
	struct command *c = x->command;
	int64_t deadline = deadline_of(wait_ms);
	uint64_t start, end, at = offset;
	size_t n;

	command_lock(c);
	command_range(c, s, &start, &end);
	while (offset >= end && wait_ms && !is_over(c) && command_wait(c, deadline))
		command_range(c, s, &start, &end);
	command_unlock(c);
	if (command_read(c, s, &at, buf, size, &n, err) < 0)
		return -1;
	if (at - n != offset && at > offset) /* dropped, or overwritten while it was read */
		return not_kept(at - n, err);
	*ret = n;
	return 0;
}

int run_consumed(struct run *x, uint64_t out, uint64_t err_offset, struct err *err)
{
	struct command *c = x->command;
	int r = 0;

	command_lock(c);
	x->seen[EXEC_OUT] = out;
	x->seen[EXEC_ERR] = err_offset;
	if (x->holds && !is_over(c))
		r = command_consumed(c, err);
	command_unlock(c);
	return r;
}

void run_hold(struct run *x, uint64_t out, uint64_t err_offset)
{
	struct command *c = x->command;
	struct err ignored;

	command_lock(c);
	x->holds = out != UINT64_MAX || err_offset != UINT64_MAX;
	x->seen[EXEC_OUT] = out;
	x->seen[EXEC_ERR] = err_offset;
	if (!is_over(c) && x->holds) {
		exec_hold(c->exec);
		c->holds = true;
	} else if (!is_over(c)) {
		(void)command_consumed(c, &ignored);
	}
	command_unlock(c);
}

static bool has_more(const struct command *c, uint64_t out, uint64_t err_offset)
{
	uint64_t start, out_end, err_end;

	command_range(c, EXEC_OUT, &start, &out_end);
	command_range(c, EXEC_ERR, &start, &err_end);
	return out_end > out || err_end > err_offset;
}

int run_wait_output(struct run *x, uint64_t out, uint64_t err_offset, int64_t wait_ms)
{
	struct command *c = x->command;
	int64_t deadline = deadline_of(wait_ms);
	bool more;

	command_lock(c);
	while (!(more = has_more(c, out, err_offset)) && !is_over(c) && command_wait(c, deadline))
		;
	command_unlock(c);
	return more;
}

/* ---- steering ------------------------------------------------------------------------------- */

/* Any use thaws. */
static int thaw(struct command *c, struct err *err)
{
	auto_call(entry_give) struct entry *n = NULL;
	struct store_session s;
	bool paused = false;

	if (c->live && entry_peek(c->engine, c->rec.session, &s)) {
		paused = s.paused;
		store_session_fini(&s);
	}
	if (!paused)
		return 0;
	if (entry_take(c->engine, NULL, c->rec.session, &n, err) < 0)
		return -1;
	return unpause(n, "lodge", err);
}

/* With live.mutex. */
static int check_runs(const struct command *c, struct err *err)
{
	if (c->ended)
		return err_set(err, ERR_CONFLICT, "command %s has ended", c->rec.id);
	if (!c->exec || c->live->gone)
		return err_set(err, ERR_UNAVAILABLE, "the sandbox of command %s is gone",
			       c->rec.id);
	return 0;
}

int run_signal(struct run *x, int signo, enum agent_scope scope, struct err *err)
{
	struct command *c = x->command;
	int r;

	if (signo < 1 || signo > SIGRTMAX)
		return err_set(err, ERR_INVALID, "signal: there is no %d", signo);
	if (thaw(c, err) < 0)
		return -1;
	command_lock(c);
	r = check_runs(c, err);
	if (r == 0) {
		r = exec_signal(c->exec, signo, scope, err);
		live_rearm(c->live);
	}
	command_unlock(c);
	return r;
}

int run_resize(struct run *x, uint32_t rows, uint32_t cols, struct err *err)
{
	struct command *c = x->command;
	int r;

	if (thaw(c, err) < 0)
		return -1;
	command_lock(c);
	r = check_runs(c, err);
	if (r == 0) {
		r = exec_resize(c->exec, rows, cols, err);
		live_rearm(c->live);
	}
	command_unlock(c);
	return r;
}

/* With live.mutex: until the command took what it was given last. Nobody tells, so it is looked at
 * again and again, less often the longer it takes. */
static int wait_fed(struct run *x, struct err *err)
{
	struct command *c = x->command;
	int64_t pause = FED_MIN_MS;
	int r;

	while ((r = check_runs(c, err)) == 0 && exec_stdin_is_busy(c->exec)) {
		if (x->give_up && x->give_up(x->give_up_arg))
			return err_set(err, ERR_UNAVAILABLE, "command %s has not taken its input",
				       c->rec.id);
		(void)command_wait(c, mono_ms() + pause);
		pause = pause * 2 < FED_MAX_MS ? pause * 2 : FED_MAX_MS;
	}
	return r;
}

static int feed(struct run *x, const char *data, size_t len, bool eof, struct err *err)
{
	struct command *c = x->command;

	if (wait_fed(x, err) < 0 || exec_stdin(c->exec, data, len, eof, err) < 0)
		return -1;
	live_rearm(c->live);
	if (eof && !len)
		return 0; /* there is nothing to take */
	if (wait_fed(x, err) < 0)
		return c->ended ? 0 : -1; /* it ended with this in its hands: it was given */
	if (!eof && exec_stdin_is_closed(c->exec))
		return err_set(err, ERR_CONFLICT, "command %s does not read its input any more",
			       c->rec.id);
	return 0;
}

void run_give_up(struct run *x, bool (*fn)(void *arg), void *arg)
{
	x->give_up = fn;
	x->give_up_arg = arg;
}

int run_offer(struct run *x, const void *data, size_t len, size_t *ret, struct err *err)
{
	struct command *c = x->command;
	size_t n = len < AGENT_DATA_MAX ? len : AGENT_DATA_MAX;
	int r;

	if (thaw(c, err) < 0)
		return -1;
	command_lock(c);
	r = check_runs(c, err);
	if (r == 0 && (!n || exec_stdin_is_busy(c->exec)))
		n = 0;
	else if (r == 0)
		r = exec_stdin(c->exec, data, n, false, err);
	if (r == 0) {
		live_rearm(c->live);
		*ret = n;
	}
	command_unlock(c);
	return r;
}

int run_stdin(struct run *x, const void *data, size_t len, bool eof, struct err *err)
{
	struct command *c = x->command;
	size_t at = 0, n;
	int r = 0;

	if (thaw(c, err) < 0)
		return -1;
	command_lock(c);
	do {
		n = len - at < AGENT_DATA_MAX ? len - at : AGENT_DATA_MAX;
		if (n || eof)
			r = feed(x, (const char *)data + at, n, eof && at + n == len, err);
		at += n;
	} while (r == 0 && at < len);
	command_unlock(c);
	return r;
}

int run_feed(struct run *x, const void *input, size_t len, bool eof, struct err *err)
{
	if (!x->first || run_stdin(x, input, len, eof, err) == 0 || err->code == ERR_CONFLICT)
		return 0;
	return -1;
}
