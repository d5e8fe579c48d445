/* SPDX-License-Identifier: Apache-2.0 */
/* /execute: run a command in a thread and wait for it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/threads/threads_sessions.h"
#include "api/v1/v1_exec.h"
#include "sandbox/guest_exec_sync.h"

static int parse_seconds(const json_t *b, uint32_t *ret_ms, struct err *err)
{
	const json_t *v = json_object_get(b, "timeout");
	double s = v && !json_is_null(v) ? json_number_value(v) : THREAD_TIMEOUT_S;

	if (v && !json_is_null(v) && !json_is_number(v))
		return err_set(err, ERR_INVALID, "timeout: must be a number of seconds");
	return thread_timeout(s, ret_ms, err);
}

/* Refused by a policy, or the sandbox has no bash. */
static bool is_refusal(const struct err *err)
{
	return (err->code == ERR_DENIED || err->code == ERR_INVALID) && err->sys == ENOEXEC;
}

static int reply_refused(struct api_call *c, const char *command, struct err *err)
{
	struct json_out j;

	threads_error_begin(&j, err->msg);
	json_out_str(&j, "command", command);
	json_out_str(&j, "forbidden_pattern", c->refusal.word);
	return api_reply(c, 400, &j, err);
}

static int put_result(struct json_out *j, struct exec_handle *x, const struct guest_exec_output *o,
		      struct err *err)
{
	const struct guest_exec_result *r = &o->result;
	int code;

	if (thread_exit_code(x, r, &code, err) < 0)
		return -1;
	json_out_i64(j, "exit_code", code);
	v1_put_output(j, "stdout", o->out, o->out_len, false);
	v1_put_output(j, "stderr", o->err, o->err_len, false);
	json_out_u64(j, "execution_time_ms", r->duration_us / 1000);
	json_out_bool(j, "timed_out", r->hits & AGENT_HIT_TIME);
	json_out_bool(j, "truncated", r->hits & AGENT_HIT_OUTPUT);
	api_put_hits(j, r->hits);
	return 0;
}

static int reply_result(struct api_call *c, const struct exec_request *w, struct exec_handle *x,
			struct err *err)
{
	auto_fini(guest_exec_output_fini) struct guest_exec_output o = { 0 };
	struct json_out j;
	bool gone;

	if (v1_exec_collect(c, w, x, &o, &gone, err) < 0)
		return -1;
	if (gone)
		return err_set(err, ERR_UNAVAILABLE, "client disconnected");
	v1_exec_out(&j, &o);
	json_out_object(&j, NULL);
	if (put_result(&j, x, &o, err) < 0) {
		json_out_fini(&j);
		return -1;
	}
	return api_reply(c, 200, &j, err);
}

int threads_execute(struct api_call *c, struct err *err)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	struct exec_request w = { 0 };
	struct session_ref ref;
	const char *id = "";
	json_t *b;

	if (api_body(c, NULL, &b, err) < 0 ||
	    threads_text(b, "session_id", STORE_KEY, &id, err) < 0 ||
	    threads_text(b, "command", STORE_COMMAND_MAX, &w.want.text, err) < 0 ||
	    parse_seconds(b, &w.want.timeout_ms, err) < 0 || api_ref(c, id, &ref, err) < 0)
		return -1;
	if (v1_exec_start(c, &ref, &w, &x, err) < 0)
		return is_refusal(err) ? reply_refused(c, w.want.text, err) : -1;
	return reply_result(c, &w, x, err);
}
