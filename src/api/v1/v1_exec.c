/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a command and waits for it, runs it in the background, or streams its output. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/internal.h"
#include "api/v1/v1_exec_stream.h"
#include "base/clock.h"
#include "session/session_api.h"

enum {
	TIMEOUT_MS = 30000,
	LOOK_MS = 1000, /* interval of checks for a disconnect */
	FEED_MAX_US = 60 * 1000 * 1000,
	OUTPUT_MOST = 64 << 20,
	ANSWER_MOST = 8 << 20, /* per stream and response; the rest is read by offset */
	STATUS_GONE = 499, /* status for the log, by convention */
};

/* ---- options --------------------------------------------------------------------------------- */

static const char exec_fields[] =
	"command argv cwd env stdin stdin_open timeout_ms background pty user idempotency_key "
	"max_output_bytes encoding";

static int parse_argv(struct api_call *c, const json_t *b, const char *const **ret, struct err *err)
{
	const json_t *v = api_member(b, "argv");
	const char **argv;
	size_t n;

	if (!v)
		return 0;
	n = json_array_size(v);
	if (!json_is_array(v) || !n)
		return err_set(err, ERR_INVALID, "argv: must be a list of strings");
	argv = arena_alloc(c->arena, (n + 1) * sizeof(*argv));
	if (!argv)
		return err_sys(err, ENOMEM, "argv");
	for (size_t i = 0; i < n; i++) {
		argv[i] = json_string_value(json_array_get(v, i));
		if (!argv[i])
			return err_set(err, ERR_INVALID, "argv[%zu]: must be a string", i);
	}
	*ret = argv;
	return 0;
}

/* {"NAME": "value"} */
static int parse_env(struct api_call *c, const json_t *b, const char *const **ret, struct err *err)
{
	json_t *v = api_member(b, "env"), *value;
	const char **env, *name;
	size_t n = 0;

	if (!v)
		return 0;
	if (!json_is_object(v))
		return err_set(err, ERR_INVALID, "env: must be an object of strings");
	env = arena_alloc(c->arena, (json_object_size(v) + 1) * sizeof(*env));
	if (!env)
		return err_sys(err, ENOMEM, "env");
	json_object_foreach (v, name, value) {
		char *pair;

		if (api_take_env(name, value, &pair, err) < 0)
			return -1;
		if (!arena_keep(c->arena, pair, free))
			return err_sys(err, ENOMEM, "env");
		env[n++] = pair;
	}
	*ret = env;
	return 0;
}

static int parse_pty(const json_t *b, struct exec_opts *w, struct err *err)
{
	json_t *v = api_member(b, "pty");
	int64_t rows = 24, cols = 80;
	const char *name;
	json_t *ignored;

	if (!v)
		return 0;
	if (!json_is_object(v))
		return err_set(err, ERR_INVALID, "pty: must be an object with rows and cols");
	json_object_foreach (v, name, ignored)
		if (strcmp(name, "rows") != 0 && strcmp(name, "cols") != 0)
			return err_set(err, ERR_INVALID,
				       "pty: unknown field \"%.64s\"; use rows and cols", name);
	if (api_int(v, "rows", 1, V1_SIDE_MAX, &rows, err) < 0 ||
	    api_int(v, "cols", 1, V1_SIDE_MAX, &cols, err) < 0)
		return err_ctx(err, "pty");
	w->pty = true;
	w->rows = (uint32_t)rows;
	w->cols = (uint32_t)cols;
	return 0;
}

/* A client that waits cannot respond to prompts. Other commands keep their input open for later
 * writes. */
static int parse_input(const json_t *b, struct exec_request *w, struct err *err)
{
	bool open = w->want.background || w->want.pty;

	if (api_str(b, "stdin", &w->input, err) < 0)
		return -1;
	if (w->input)
		open = false;
	if (api_bool(b, "stdin_open", &open, err) < 0)
		return -1;
	w->keep_open = open;
	w->want.stdin_open = open || w->input;
	return 0;
}

static int parse_request(struct api_call *c, const json_t *b, struct exec_request *w,
			 struct err *err)
{
	int64_t timeout = TIMEOUT_MS, most = 0;
	struct exec_opts *to = &w->want;

	if (api_str(b, "command", &to->text, err) < 0 || parse_argv(c, b, &to->argv, err) < 0 ||
	    api_str(b, "cwd", &to->cwd, err) < 0 || parse_env(c, b, &to->env, err) < 0 ||
	    api_int(b, "timeout_ms", 0, UINT32_MAX, &timeout, err) < 0 ||
	    api_bool(b, "background", &to->background, err) < 0 || parse_pty(b, to, err) < 0 ||
	    parse_input(b, w, err) < 0 || api_str(b, "user", &to->user, err) < 0 ||
	    api_str(b, "idempotency_key", &to->idempotency_key, err) < 0 ||
	    api_int(b, "max_output_bytes", 1, OUTPUT_MOST, &most, err) < 0 ||
	    api_choice(b, "encoding", "utf-8", "base64", &w->base64, err) < 0)
		return -1;
	to->timeout_ms = (uint32_t)timeout;
	to->output_bytes = (uint64_t)most;
	to->no_resume = v1_no_resume(c);
	return 0;
}

bool v1_no_resume(struct api_call *c)
{
	return http_query(c->rq, "resume") && !api_query_flag(c, "resume");
}

/* ---- results --------------------------------------------------------------------------------- */

void v1_put_output(struct json_out *j, const char *key, const void *bytes, size_t len, bool base64)
{
	if (base64)
		json_out_base64(j, key, bytes, len);
	else
		json_out_bytes(j, key, bytes, len);
}

int v1_put_result(struct json_out *j, struct exec_handle *x, const struct guest_exec_output *o,
		  struct err *err)
{
	const struct guest_exec_result *r = &o->result;
	auto_fini(store_exec_fini) struct store_exec rec = { 0 };

	if (exec_get_info(x, &rec, err) < 0)
		return -1;
	json_out_str(j, "exec_id", rec.id);
	json_out_i64_if(j, "exit_code", rec.state != EXEC_LOST && !r->signal, r->code);
	json_out_i64_if(j, "signal", r->signal, r->signal);
	json_out_u64(j, "stdout_bytes", o->out_total);
	json_out_u64(j, "stderr_bytes", o->err_total);
	json_out_bool(j, "truncated", r->hits & AGENT_HIT_OUTPUT);
	json_out_bool(j, "timed_out", r->hits & AGENT_HIT_TIME);
	json_out_bool(j, "oom_killed", rec.oom_killed);
	json_out_bool(j, "lost", rec.state == EXEC_LOST);
	json_out_text(j, "reason", rec.reason);
	api_put_hits(j, r->hits);
	json_out_u64(j, "duration_ms", r->duration_us / 1000);
	json_out_object(j, "usage");
	json_out_u64(j, "cpu_ms", r->cpu_us / 1000);
	json_out_u64(j, "max_rss_bytes", r->max_rss_bytes);
	json_out_end(j);
	return 0;
}

/* ---- running --------------------------------------------------------------------------------- */

bool v1_is_gone(void *rq)
{
	return http_is_gone(rq);
}

/* The client may have closed only its sending half and still read the response. This is not a
 * server error. */
static int log_disconnect(struct api_call *c, struct exec_handle *x, struct err *err)
{
	struct json_out j;

	api_error_begin(&j, "CALLER_GONE", "client disconnected; the command keeps running");
	json_out_str(&j, "exec_id", exec_get_id(x));
	return api_reply(c, STATUS_GONE, &j, err);
}

/* 1: the client disconnected. The command keeps running. */
static int wait_for(struct api_call *c, const struct exec_request *w, struct exec_handle *x,
		    struct err *err)
{
	exec_set_cancel(x, v1_is_gone, c->rq);
	if (w->input && exec_feed_stdin(x, w->input, strlen(w->input), !w->keep_open, err) < 0)
		return -1;
	while (exec_wait(x, LOOK_MS, err) < 0) {
		if (err->code != ERR_TIMEOUT)
			return -1;
		if (http_is_gone(c->rq))
			return 1;
	}
	return 0;
}

/* Truncates the output to the last bytes that fit into a response. */
static void truncate_output(struct guest_exec_output *o, char *bytes, size_t *len)
{
	if (*len <= ANSWER_MOST)
		return;
	o->result.hits |= AGENT_HIT_OUTPUT;
	memmove(bytes, bytes + *len - ANSWER_MOST, ANSWER_MOST);
	*len = ANSWER_MOST;
}

int v1_exec_collect(struct api_call *c, const struct exec_request *w, struct exec_handle *x,
		    struct guest_exec_output *ret, struct err *err)
{
	int64_t began_us = clock_mono_us();
	int r = wait_for(c, w, x, err);

	if (r)
		return r;
	if (exec_finish(x, NULL, 0, ret, err) < 0)
		return -1;
	histogram_add(&c->api->exec, (uint64_t)(clock_mono_us() - began_us));
	truncate_output(ret, ret->out, &ret->out_len);
	truncate_output(ret, ret->err, &ret->err_len);
	return 0;
}

void v1_exec_out(struct json_out *j, const struct guest_exec_output *o)
{
	/* JSON escapes take up to six bytes per byte */
	json_out_init(j, 6 * (o->out_len + o->err_len) + (64 << 10));
}

static int reply_result(struct api_call *c, const struct exec_request *w, struct exec_handle *x,
			struct err *err)
{
	auto_fini(guest_exec_output_fini) struct guest_exec_output o = { 0 };
	auto_fini(json_out_fini) struct json_out j = { 0 };
	int r = v1_exec_collect(c, w, x, &o, err);

	if (r)
		return r < 0 ? -1 : log_disconnect(c, x, err);
	v1_exec_out(&j, &o);
	json_out_object(&j, NULL);
	v1_put_output(&j, "stdout", o.out, o.out_len, w->base64);
	v1_put_output(&j, "stderr", o.err, o.err_len, w->base64);
	return v1_put_result(&j, x, &o, err) < 0 ? -1 : api_reply(c, 200, &j, err);
}

/* Writes the input of a background command. This thread blocks until the command has read it. */
struct feeding {
	struct http_request *rq;
	int64_t until_us;
};

static bool has_waited(void *arg)
{
	const struct feeding *f = arg;

	return http_is_ending(f->rq) || clock_mono_us() >= f->until_us;
}

/* Responds before it writes the input: the command may read it at any time. */
static int reply_background(struct api_call *c, const struct exec_request *w, struct exec_handle *x,
			    struct err *err)
{
	auto_fini(store_exec_fini) struct store_exec rec = { 0 };
	struct feeding f = { c->rq, clock_mono_us() + FEED_MAX_US };
	struct err ignored;
	struct json_out j;

	if (exec_get_info(x, &rec, err) < 0)
		return -1;
	api_object(&j);
	json_out_str(&j, "exec_id", rec.id);
	json_out_str(&j, "state", api_exec_state(rec.state));
	json_out_end(&j);
	if (api_reply(c, 202, &j, err) < 0)
		return -1;
	exec_set_cancel(x, has_waited, &f);
	if (w->input)
		(void)exec_write_stdin(x, w->input, strlen(w->input), !w->keep_open, &ignored);
	return 0;
}

int v1_exec_start(struct api_call *c, const struct session_ref *ref, const struct exec_request *w,
		  struct exec_handle **ret, struct err *err)
{
	enum session_outcome outcome = SESSION_REUSED;
	struct exec_opts want = w->want;

	want.refusal = &c->refusal;
	if (exec_start(c->engine, &c->caller, ref, &want, ret, &outcome, err) < 0)
		return -1;
	if (outcome != SESSION_REUSED)
		http_set_header(c->rq, "Lodge-Outcome", api_outcome_name(outcome));
	return 0;
}

int v1_open_exec(struct api_call *c, const char *id, struct exec_handle **ret, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	auto_fini(store_exec_fini) struct store_exec rec = { 0 };
	auto_call(exec_close) struct exec_handle *x = NULL;

	if (api_session(c, &s, err) < 0 || exec_open(c->engine, &c->caller, id, &x, err) < 0 ||
	    exec_get_info(x, &rec, err) < 0)
		return -1;
	if (strcmp(rec.session, s.id) != 0)
		return err_set(err, ERR_NOT_FOUND, "no command %s", exec_get_id(x));
	*ret = steal_ptr(&x);
	return 0;
}

int v1_start_exec(struct api_call *c, struct err *err)
{
	auto_call(exec_close) struct exec_handle *x = NULL;
	enum v1_stream how = v1_stream_is_requested(c);
	struct exec_request w = { 0 };
	struct session_ref ref;
	int64_t has[2];
	json_t *b;

	if (api_ref(c, c->params[0], &ref, err) < 0 || api_body(c, exec_fields, &b, err) < 0 ||
	    parse_request(c, b, &w, err) < 0 || v1_stream_offset(c, has, err) < 0)
		return -1;
	if (w.want.background)
		how = V1_NO_STREAM;
	/* a retry must not send the same input twice */
	if (w.input && w.want.idempotency_key &&
	    (how != V1_NO_STREAM || w.want.background || w.keep_open))
		return err_set(err, ERR_INVALID,
			       "stdin: with an idempotency_key, not allowed in the background");
	w.want.hold_output = how != V1_NO_STREAM;
	w.want.must_exist = has[0] > 0 || has[1] > 0;
	if ((how != V1_NO_STREAM && api_take(c, TENANT_STREAMS, 1, err) < 0) ||
	    v1_exec_start(c, &ref, &w, &x, err) < 0)
		return -1;
	http_set_header(c->rq, "Lodge-Exec", exec_get_id(x));
	if (how != V1_NO_STREAM)
		return v1_exec_stream(c, &w, how, has, steal_ptr(&x), err);
	return w.want.background ? reply_background(c, &w, x, err) : reply_result(c, &w, x, err);
}
