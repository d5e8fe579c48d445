/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of threads: create, query, delete, run a command and wait for it. */
#include "api/threads/threads_sessions.h"

#include <errno.h>
#include <string.h>

#include "api/v1/v1_sessions.h"
#include "api/v1/v1_exec.h"
#include "sandbox/template/template_json.h"
#include "thread/thread_files.h"
#include "engine/session_state.h"
#include "exec/side_conn.h"
#include "session/session_api.h"

/* ---- responses ------------------------------------------------------------------------------- */

static const char *get_message(const struct api_call *c, const struct err *err, unsigned status)
{
	if (err->code == ERR_UNAVAILABLE && err->sys == EAGAIN)
		return "Pool at max capacity, try again later";
	if (status == 404 && c->route)
		return err->sys == ENOENT ? "File not found" : "Invalid or expired session";
	return api_error_text(err);
}

/* Errors of a handler are 422; errors before it are 400. */
static unsigned put_error(struct api_call *c, const struct err *err, struct json_out *j)
{
	unsigned status = api_status(err);

	if (status == 400 && c->route)
		status = 422;
	if (status == 410 && err->sys != SESSION_SANDBOX_ENDED)
		status = 404;
	json_out_object(j, NULL);
	json_out_str(j, "detail", get_message(c, err, status));
	json_out_end(j);
	return status;
}

const struct api_surface threads_surface = { .routes = API_TABLE(THREADS_ROUTES),
					     .put_error = put_error,
					     .no_store = true,
					     .untyped_json = true };

int threads_error(struct api_call *c, unsigned status, const char *detail, struct err *err)
{
	struct json_out j;

	api_object(&j);
	json_out_str(&j, "detail", detail);
	return api_reply(c, status, &j, err);
}

void threads_error_begin(struct json_out *j, const char *error)
{
	api_object(j);
	json_out_object(j, "detail");
	json_out_str(j, "error", error);
}

int threads_text(const json_t *b, const char *name, size_t max, const char **ret, struct err *err)
{
	const char *text = NULL;

	if (api_str(b, name, &text, err) < 0)
		return -1;
	if (!text)
		return err_set(err, ERR_INVALID, "%s: missing", name);
	if (!*text || strlen(text) > max)
		return err_set(err, ERR_INVALID, "%s: must be 1 to %zu bytes", name, max);
	*ret = text;
	return 0;
}

/* ---- create ---------------------------------------------------------------------------------- */

/* Limits of the session itself, which may differ from the current settings. */
static void put_session(struct api_call *c, struct json_out *j, const struct store_session *s,
			bool with_user)
{
	const struct thread_config *t = &c->api->opts.threads;
	auto_fini(template_fini) struct template spec;
	struct err ignored;

	template_init(&spec);
	if (s->spec)
		(void)template_parse("session", s->spec, strlen(s->spec), &spec, &ignored);
	json_out_str(j, "workspace_dir", spec.workdir ? spec.workdir : t->workdir);
	if (with_user)
		json_out_str(j, "user", spec.user ? spec.user : t->user);
}

/* The timeout is the only one that a request can set. */
static void put_timeout_name(struct json_out *j, const char *key, const struct session_fields *f)
{
	json_out_array(j, key);
	if (session_fields_has(f, SESSION_FIELD_IDLE))
		json_out_str(j, NULL, "timeout_minutes");
	json_out_end(j);
}

static void put_made(struct api_call *c, struct json_out *j, const char *key,
		     const struct session_enter_result *how, const char *status)
{
	const struct store_session *s = &how->session;

	json_out_object(j, key);
	json_out_str(j, "session_id", s->id);
	json_out_text(j, "thread_id", api_binding(s, "thread"));
	json_out_str(j, "status", status);
	put_session(c, j, s, true);
	api_put_iso(j, "expires_at", s->hibernate_at ? s->hibernate_at : s->expires_at);
	put_timeout_name(j, "adjusted", &how->adjusted);
	put_timeout_name(j, "ignored", &how->ignored);
	json_out_end(j);
}

static int reply_made(struct api_call *c, const struct session_enter_result *how, struct err *err)
{
	bool existed = how->outcome == SESSION_REUSED;
	struct json_out j;

	if (existed) {
		api_object(&j);
		put_made(c, &j, "detail", how, "existing");
	} else {
		histogram_add(&c->api->entered[SESSION_CREATED], how->ready_us);
		api_out(&j);
		put_made(c, &j, NULL, how, "created");
	}
	return api_reply(c, existed ? 409 : 201, &j, err);
}

int threads_create_session(struct api_call *c, struct err *err)
{
	struct store_binding key = { .kind = "thread" };
	auto_fini(session_enter_result_fini) struct session_enter_result how = { 0 };
	struct session_opts w = { 0 };
	const char *thread = "";
	int64_t minutes = 0;
	json_t *b;

	if (api_body(c, NULL, &b, err) < 0 ||
	    threads_text(b, "user_id", STORE_USER - 1, &w.user, err) < 0 ||
	    threads_text(b, "thread_id", STORE_KEY - 1, &thread, err) < 0 ||
	    api_int(b, "timeout_minutes", 1, THREAD_MINUTES_MAX, &minutes, err) < 0)
		return -1;
	memcpy(key.key, thread, strlen(thread) + 1);
	if (v1_check_token(c, &key, &w, err) < 0 ||
	    thread_enter(c->engine, &c->caller, &c->api->opts.threads, w.user, thread, minutes,
			 &how, err) < 0)
		return -1;
	return reply_made(c, &how, err);
}

/* ---- queries --------------------------------------------------------------------------------- */

/* null while hibernated: this call does not resume it. */
static void put_count(struct api_call *c, struct json_out *j, const struct store_session *s)
{
	struct session_ref ref = { .id = s->id };
	auto_call(side_conn_close) struct side_conn *conn = NULL;
	struct thread_files_total n;
	struct err ignored;

	if (side_conn_open_readonly(c->engine, &c->caller, &ref, &conn, &ignored) < 0 ||
	    thread_files_count(conn, &n, &ignored) < 0)
		json_out_null(j, "files_count");
	else
		json_out_u64(j, "files_count", n.files);
}

/* An expired session is reported while its tombstone exists. */
static int reply_unknown(struct api_call *c, const struct session_ref *ref, struct err *err)
{
	struct store_tombstone t;
	struct json_out j;
	bool expired;

	expired = session_tombstone(c->engine, &c->caller, ref, &t, err) == 0 &&
		  api_may_see(c, t.session, err) == 0 &&
		  strcmp(t.cause.code, session_cause_name(SESSION_CAUSE_REQUESTED)) != 0;
	threads_error_begin(&j,
			    expired ? "Session expired" : "No active session found for thread_id");
	json_out_str(&j, "thread_id", ref->key);
	if (expired) {
		json_out_str(&j, "session_id", t.session);
		json_out_str(&j, "reason", t.cause.text);
		api_put_iso(&j, "expired_at", t.cause.at);
	}
	return api_reply(c, 404, &j, err);
}

int threads_get_session(struct api_call *c, struct err *err)
{
	struct session_ref ref = { .kind = "thread", .key = http_query(c->rq, "thread_id") };
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct json_out j;

	if (!ref.key || !*ref.key)
		return err_set(err, ERR_INVALID, "thread_id: missing");
	if (session_get(c->engine, &c->caller, &ref, &s, err) < 0 || api_may_see(c, s.id, err) < 0)
		return err->code == ERR_NOT_FOUND ? reply_unknown(c, &ref, err) : -1;
	api_object(&j);
	json_out_str(&j, "session_id", s.id);
	json_out_str(&j, "thread_id", ref.key);
	json_out_str(&j, "status", "active");
	api_put_iso(&j, "created_at", s.created_at);
	api_put_iso(&j, "last_activity", s.last_activity_at);
	put_session(c, &j, &s, false);
	put_count(c, &j, &s);
	return api_reply(c, 200, &j, err);
}

int threads_get_status(struct api_call *c, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct json_out j;

	if (api_session(c, &s, err) < 0)
		return -1;
	api_object(&j);
	json_out_str(&j, "status", "active");
	json_out_str(&j, "worker", c->api->worker);
	api_put_iso(&j, "created_at", s.created_at);
	api_put_iso(&j, "last_activity", s.last_activity_at);
	return api_reply(c, 200, &j, err);
}

/* Succeeds if the session does not exist. */
int threads_clean_up(struct api_call *c, struct err *err)
{
	struct session_ref ref;
	struct json_out j;
	const char *id = "";
	json_t *b;

	if (api_body(c, NULL, &b, err) < 0 ||
	    threads_text(b, "session_id", STORE_KEY, &id, err) < 0)
		return -1;
	if ((api_ref(c, id, &ref, err) < 0 ||
	     session_destroy(c->engine, &c->caller, &ref, NULL, NULL, err) < 0) &&
	    err->code != ERR_NOT_FOUND)
		return -1;
	api_object(&j);
	json_out_str(&j, "status", "cleaned_up");
	json_out_str(&j, "session_id", id);
	return api_reply(c, 200, &j, err);
}

/* ---- execute --------------------------------------------------------------------------------- */

static int parse_seconds(const json_t *b, uint32_t *ret_ms, struct err *err)
{
	const json_t *v = api_member(b, "timeout");

	if (v && !json_is_number(v))
		return err_set(err, ERR_INVALID, "timeout: must be a number of seconds");
	return thread_timeout(v ? json_number_value(v) : THREAD_TIMEOUT_S, ret_ms, err);
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
	auto_fini(json_out_fini) struct json_out j = { 0 };
	int r = v1_exec_collect(c, w, x, &o, err);

	if (r)
		return r < 0 ? -1 : err_set(err, ERR_UNAVAILABLE, "client disconnected");
	v1_exec_out(&j, &o);
	json_out_object(&j, NULL);
	return put_result(&j, x, &o, err) < 0 ? -1 : api_reply(c, 200, &j, err);
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
		/* refused by a policy, or the sandbox has no bash */
		return (err->code == ERR_DENIED || err->code == ERR_INVALID) && err->sys == ENOEXEC
			       ? reply_refused(c, w.want.text, err)
			       : -1;
	return reply_result(c, &w, x, err);
}
