/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/guest_exec_sync.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/agent_client.h"
#include "sandbox/guest_exec.h"
#include "sandbox/agent_sync.h"
#include "sandbox/guest_exec_log.h"

static int fail_exec(const struct guest_exec *x, struct err *err)
{
	*err = *guest_exec_error(x);
	return -1;
}

int guest_exec_start(struct sandbox *sb, const struct guest_exec_spec *spec,
		     struct guest_exec **ret, struct err *err)
{
	auto_call(guest_exec_free) struct guest_exec *x = NULL;

	if (guest_exec_begin(sb, spec, &x, err) < 0)
		return -1;
	while (guest_exec_state(x) == GUEST_EXEC_STARTING)
		if (agent_step(guest_exec_agent(x), -1, err) < 0)
			break;
	if (guest_exec_state(x) == GUEST_EXEC_FAILED)
		return fail_exec(x, err);
	if (guest_exec_state(x) == GUEST_EXEC_STARTING)
		return -1;
	*ret = steal_ptr(&x);
	return 0;
}

int guest_exec_wait(struct guest_exec *x, int timeout_ms, struct err *err)
{
	if (!*guest_exec_ended(x) &&
	    agent_wait(guest_exec_agent(x), guest_exec_ended(x), timeout_ms, err) < 0)
		return -1;
	return guest_exec_state(x) == GUEST_EXEC_FAILED ? fail_exec(x, err) : 0;
}

int guest_exec_kill(struct guest_exec *x, struct err *err)
{
	return *guest_exec_ended(x) ? 0 : guest_exec_signal(x, SIGKILL, AGENT_TO_TREE, err);
}

/* ---- run to completion ------------------------------------------------------------------------
 */

static int feed_stdin(struct guest_exec *x, const char *input, size_t len, size_t *at,
		      struct err *err)
{
	size_t n = len - *at < AGENT_DATA_MAX ? len - *at : AGENT_DATA_MAX;

	if (guest_exec_stdin_is_closed(x) || guest_exec_stdin_is_busy(x))
		return 0;
	if (guest_exec_stdin(x, input + *at, n, *at + n == len, err) < 0)
		return -1;
	*at += n;
	return 0;
}

static int collect_stream(struct guest_exec *x, enum guest_exec_stream s, char **ret,
			  size_t *ret_len, struct err *err)
{
	uint64_t at = guest_exec_start_offset(x, s);
	size_t size = (size_t)(guest_exec_end(x, s) - at), len = 0;
	char *buf = malloc(size + 1);
	ssize_t n;

	if (!buf)
		return err_sys(err, ENOMEM, "output");
	while (len < size && (n = guest_exec_read(x, s, &at, buf + len, size - len)) != 0) {
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

int guest_exec_collect(struct guest_exec *x, struct guest_exec_output *ret, struct err *err)
{
	struct guest_exec_output o = { .result = *guest_exec_result(x),
				       .out_total = guest_exec_end(x, GUEST_EXEC_OUT),
				       .err_total = guest_exec_end(x, GUEST_EXEC_ERR) };

	if (collect_stream(x, GUEST_EXEC_OUT, &o.out, &o.out_len, err) < 0 ||
	    collect_stream(x, GUEST_EXEC_ERR, &o.err, &o.err_len, err) < 0) {
		guest_exec_output_fini(&o);
		return -1;
	}
	if (o.out_len != o.out_total || o.err_len != o.err_total)
		o.result.hits |= AGENT_HIT_OUTPUT;
	*ret = o;
	return 0;
}

int guest_exec_run(struct sandbox *sb, const struct guest_exec_spec *spec, const void *input,
		   size_t input_len, struct guest_exec_output *ret, struct err *err)
{
	auto_call(guest_exec_free) struct guest_exec *x = NULL;
	struct guest_exec_spec own = *spec;
	size_t at = 0;

	own.stdin_open = input != NULL;
	own.hold = false;
	if (guest_exec_begin(sb, &own, &x, err) < 0)
		return -1;
	while (!*guest_exec_ended(x)) {
		if (feed_stdin(x, input, input_len, &at, err) < 0)
			return -1;
		if (agent_step(guest_exec_agent(x), -1, err) < 0 && !*guest_exec_ended(x))
			return -1;
	}
	if (guest_exec_state(x) == GUEST_EXEC_FAILED)
		return fail_exec(x, err);
	return guest_exec_collect(x, ret, err);
}

void guest_exec_output_fini(struct guest_exec_output *o)
{
	free(o->out);
	free(o->err);
	*o = (struct guest_exec_output){ 0 };
}
