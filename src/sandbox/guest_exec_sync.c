/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking half of exec.h: poll(2) around the asynchronous one. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/agent_client.h"
#include "sandbox/guest_exec.h"

static int fail(const struct exec *x, struct err *err)
{
	*err = *exec_error(x);
	return -1;
}

int exec_start(struct sandbox *sb, const struct exec_spec *spec, struct exec **ret, struct err *err)
{
	auto_call(exec_free) struct exec *x = NULL;

	if (exec_begin(sb, spec, &x, err) < 0)
		return -1;
	while (exec_state(x) == EXEC_STARTING)
		if (agent_step(exec_agent(x), -1, err) < 0)
			break;
	if (exec_state(x) == EXEC_FAILED)
		return fail(x, err);
	if (exec_state(x) == EXEC_STARTING)
		return -1;
	*ret = steal_ptr(&x);
	return 0;
}

int exec_wait(struct exec *x, int timeout_ms, struct err *err)
{
	if (!*exec_ended(x) && agent_wait(exec_agent(x), exec_ended(x), timeout_ms, err) < 0)
		return -1;
	return exec_state(x) == EXEC_FAILED ? fail(x, err) : 0;
}

int exec_kill(struct exec *x, struct err *err)
{
	return *exec_ended(x) ? 0 : exec_signal(x, SIGKILL, AGENT_TO_TREE, err);
}

/* ---- run to the end -------------------------------------------------------------------------- */

static int feed(struct exec *x, const char *input, size_t len, size_t *at, struct err *err)
{
	size_t n = len - *at < AGENT_DATA_MAX ? len - *at : AGENT_DATA_MAX;

	if (exec_stdin_is_closed(x) || exec_stdin_is_busy(x))
		return 0;
	if (exec_stdin(x, input + *at, n, *at + n == len, err) < 0)
		return -1;
	*at += n;
	return 0;
}

static int collect(struct exec *x, enum exec_stream s, char **ret, size_t *ret_len, struct err *err)
{
	uint64_t at = exec_start_offset(x, s);
	size_t size = (size_t)(exec_end(x, s) - at), len = 0;
	char *buf = malloc(size + 1);
	ssize_t n;

	if (!buf)
		return err_sys(err, ENOMEM, "output");
	while (len < size && (n = exec_read(x, s, &at, buf + len, size - len)) != 0) {
		if (n < 0) {
			free(buf);
			return err_sys(err, (int)-n, "output");
		}
		len += (size_t)n;
	}
	buf[len] = '\0';
	*ret = buf;
	*ret_len = len;
	return 0;
}

int exec_collect(struct exec *x, struct exec_output *ret, struct err *err)
{
	struct exec_output o = { .result = *exec_result(x),
				 .out_total = exec_end(x, EXEC_OUT),
				 .err_total = exec_end(x, EXEC_ERR) };

	if (collect(x, EXEC_OUT, &o.out, &o.out_len, err) < 0 ||
	    collect(x, EXEC_ERR, &o.err, &o.err_len, err) < 0) {
		exec_output_fini(&o);
		return -1;
	}
	if (o.out_len != o.out_total || o.err_len != o.err_total)
		o.result.hits |= AGENT_HIT_OUTPUT;
	*ret = o;
	return 0;
}

int exec_run(struct sandbox *sb, const struct exec_spec *spec, const void *input, size_t input_len,
	     struct exec_output *ret, struct err *err)
{
	auto_call(exec_free) struct exec *x = NULL;
	struct exec_spec own = *spec;
	size_t at = 0;

	own.stdin_open = input != NULL;
	own.hold = false;
	if (exec_begin(sb, &own, &x, err) < 0)
		return -1;
	while (!*exec_ended(x)) {
		if (feed(x, input, input_len, &at, err) < 0)
			return -1;
		if (agent_step(exec_agent(x), -1, err) < 0 && !*exec_ended(x))
			return -1;
	}
	if (exec_state(x) == EXEC_FAILED)
		return fail(x, err);
	return exec_collect(x, ret, err);
}

void exec_output_fini(struct exec_output *o)
{
	free(o->out);
	free(o->err);
	*o = (struct exec_output){ 0 };
}
