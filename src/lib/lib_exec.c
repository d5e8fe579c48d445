/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a session. A struct lodge_exec is the engine's own handle. */
#include <signal.h>
#include <stdio.h>

#include "lib/lib_exec.h"
#include "lib/lib_convert.h"
#include "lib/lib_opts.h"
#include "exec/exec_lookup.h"
#include "sandbox/guest_exec_sync.h"

_Static_assert((int)LODGE_HIT_FILE == (int)AGENT_HIT_FILE &&
		       (int)LODGE_HIT_MEMORY == (int)AGENT_HIT_MEMORY,
	       "the hits are the same");
_Static_assert((int)LODGE_STDERR == (int)GUEST_EXEC_ERR &&
		       (int)LODGE_TO_TREE == (int)AGENT_TO_TREE &&
		       (int)LODGE_TO_PROCESS == (int)AGENT_TO_PROCESS,
	       "streams and scopes are the same");

static struct exec_handle *handle_of(struct lodge_exec *x)
{
	return (struct exec_handle *)x;
}

static struct exec_opts opts_of(const struct lodge_command *c)
{
	return (struct exec_opts){ .argv = c->argv,
				   .text = c->text,
				   .env = c->env,
				   .cwd = c->cwd,
				   .user = c->user,
				   .timeout_ms = c->timeout_ms,
				   .output_bytes = c->output_bytes,
				   .background = c->background,
				   .stdin_open = c->stdin_open,
				   .merge = c->merge,
				   .login = c->login,
				   .pty = c->pty,
				   .rows = c->rows,
				   .cols = c->cols,
				   .hold_output = c->hold,
				   .idempotency_key = c->idempotency_key,
				   .no_resume = c->no_resume,
				   .refusal = &last_word };
}

/* ---- to its end ------------------------------------------------------------------------------ */

struct result_box {
	struct lodge_result pub;
	struct guest_exec_output rec;
	char id[STORE_ID];
};

static void result_fini(void *body)
{
	struct result_box *b = body;

	guest_exec_output_fini(&b->rec);
}

/* Takes ownership of *o, also on failure. */
static int make_result(struct exec_handle *x, struct guest_exec_output *o,
		       struct lodge_result **ret)
{
	struct result_box *b = box_new(sizeof(*b), result_fini);
	int status;

	if (!b || thread_exit_code(x, &o->result, &status, &last) < 0) {
		lodge_free(b);
		guest_exec_output_fini(o);
		return -1;
	}
	b->rec = *o;
	snprintf(b->id, sizeof(b->id), "%s", exec_get_id(x));
	b->pub = (struct lodge_result){ .exec_id = b->id,
					.exit_code = o->result.code,
					.signal = o->result.signal,
					.limits_hit = o->result.hits,
					.out = o->out,
					.err = o->err,
					.out_len = o->out_len,
					.err_len = o->err_len,
					.out_total = o->out_total,
					.err_total = o->err_total,
					.duration_us = o->result.duration_us,
					.cpu_us = o->result.cpu_us,
					.max_rss_bytes = o->result.max_rss_bytes,
					.status = status };
	*ret = &b->pub;
	return 0;
}

int lib_put_run(struct lodge *l, const struct session_ref *ref, struct exec_opts *want,
		const void *input, size_t input_len, struct lodge_result **ret)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct guest_exec_output o = { 0 };

	want->stdin_open = input != NULL;
	if (exec_start(l->engine, &l->caller, ref, want, &x, &last_outcome, &last) < 0 ||
	    exec_finish(x, input, input_len, &o, &last) < 0)
		return -1;
	return make_result(x, &o, ret);
}

PUBLIC int lodge_run(struct lodge *l, const struct lodge_ref *ref, const struct lodge_command *cmd,
		     struct lodge_result **ret)
{
	struct exec_opts want;
	struct lodge_command c;
	struct session_ref r;

	forget_last();
	if (lib_get_ref(ref, &r) < 0 || TAKE(lodge_command, cmd, &c) < 0)
		return -1;
	if (c.background || c.stdin_open || c.hold)
		return err_set(&last, ERR_INVALID,
			       "background, stdin_open, hold: only for lodge_exec_start()");
	want = opts_of(&c);
	return lib_put_run(l, &r, &want, c.input, c.input_len, ret);
}

/* ---- by a handle ----------------------------------------------------------------------------- */

PUBLIC int lodge_exec_start(struct lodge *l, const struct lodge_ref *ref,
			    const struct lodge_command *cmd, struct lodge_exec **ret)
{
	struct exec_opts want;
	struct lodge_command c;
	struct session_ref r;
	struct exec_handle *x;

	forget_last();
	if (lib_get_ref(ref, &r) < 0 || TAKE(lodge_command, cmd, &c) < 0)
		return -1;
	if (c.input)
		return err_set(&last, ERR_INVALID, "input: only for lodge_run()");
	want = opts_of(&c);
	if (exec_start(l->engine, &l->caller, &r, &want, &x, &last_outcome, &last) < 0)
		return -1;
	*ret = (struct lodge_exec *)x;
	return 0;
}

PUBLIC int lodge_exec_open(struct lodge *l, const char *exec_id, struct lodge_exec **ret)
{
	struct exec_handle *x;

	if (!exec_id)
		return err_set(&last, ERR_INVALID, "exec_id: missing");
	if (exec_open(l->engine, &l->caller, exec_id, &x, &last) < 0)
		return -1;
	*ret = (struct lodge_exec *)x;
	return 0;
}

PUBLIC void lodge_exec_close(struct lodge_exec *x)
{
	exec_close(handle_of(x));
}

PUBLIC const char *lodge_exec_id(const struct lodge_exec *x)
{
	return exec_get_id((const struct exec_handle *)x);
}

PUBLIC int lodge_exec_get(struct lodge_exec *x, struct lodge_exec_info **ret)
{
	struct store_exec rec = { 0 };

	if (exec_get_info(handle_of(x), &rec, &last) < 0)
		return -1;
	return lib_put_exec(&rec, ret);
}

PUBLIC int lodge_exec_list(struct lodge *l, const struct lodge_ref *ref, int64_t after,
			   uint32_t limit, struct lodge_execs **ret)
{
	struct store_exec_list list = { 0 };
	struct session_ref r;

	if (lib_get_ref(ref, &r) < 0 ||
	    exec_list(l->engine, &l->caller, &r, lib_get_page(after, limit), &list, &last) < 0)
		return -1;
	return lib_put_execs(&list, ret);
}

PUBLIC int lodge_exec_wait_0_1(struct lodge_exec *x, int64_t timeout_ms)
{
	return exec_wait(handle_of(x), timeout_ms, &last);
}

PUBLIC int lodge_exec_wait(struct lodge_exec *x, int64_t timeout_ms, struct lodge_result **ret)
{
	struct guest_exec_output o = { 0 };

	if (exec_wait(handle_of(x), timeout_ms, &last) < 0)
		return -1;
	if (!ret)
		return 0;
	return exec_finish(handle_of(x), NULL, 0, &o, &last) < 0
		       ? -1
		       : make_result(handle_of(x), &o, ret);
}

PUBLIC int lodge_exec_ended(struct lodge_exec *x)
{
	return exec_has_ended(handle_of(x));
}

static int check_stream(enum lodge_stream s)
{
	if (s == LODGE_STDOUT || s == LODGE_STDERR)
		return 0;
	return err_set(&last, ERR_INVALID, "stream: unknown value %d", (int)s);
}

PUBLIC int lodge_exec_range(struct lodge_exec *x, enum lodge_stream s, uint64_t *ret_start,
			    uint64_t *ret_end)
{
	if (check_stream(s) < 0)
		return -1;
	exec_output_range(handle_of(x), (enum guest_exec_stream)s, ret_start, ret_end);
	return 0;
}

PUBLIC int lodge_exec_read(struct lodge_exec *x, enum lodge_stream s, uint64_t offset, void *buf,
			   size_t size, int64_t wait_ms, size_t *ret)
{
	if (check_stream(s) < 0)
		return -1;
	return exec_read(handle_of(x), (enum guest_exec_stream)s, offset, buf, size, wait_ms, ret,
			 &last);
}

PUBLIC int lodge_exec_wait_output(struct lodge_exec *x, uint64_t out, uint64_t err, int64_t wait_ms)
{
	return exec_wait_output(handle_of(x), out, err, wait_ms);
}

PUBLIC int lodge_exec_consumed(struct lodge_exec *x, uint64_t out, uint64_t err)
{
	return exec_consumed(handle_of(x), out, err, &last);
}

PUBLIC int lodge_exec_write(struct lodge_exec *x, const void *data, size_t len, int eof)
{
	return exec_write_stdin(handle_of(x), data, len, eof, &last);
}

PUBLIC int lodge_exec_signal(struct lodge_exec *x, int signo, enum lodge_scope scope)
{
	return exec_signal(handle_of(x), signo, (enum agent_scope)scope, &last);
}

PUBLIC int lodge_exec_kill(struct lodge_exec *x)
{
	if (exec_signal(handle_of(x), SIGKILL, AGENT_TO_TREE, &last) == 0)
		return 0;
	return last.code == ERR_CONFLICT && exec_has_ended(handle_of(x)) ? 0 : -1;
}

PUBLIC int lodge_exec_resize(struct lodge_exec *x, uint32_t rows, uint32_t cols)
{
	return exec_resize(handle_of(x), rows, cols, &last);
}
