/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of threads: making, finding and ending them. */
#include "api/threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/v1.h"

enum { MINUTE_MS = 60000, MINUTES_MAX = 7 * 24 * 60 };

static const char default_user[] = "user", default_workdir[] = "/workspace";

DEFINE_AUTO(struct store_session *, store_session_fini);
DEFINE_AUTO(struct template *, template_fini);

/* ---- settings -------------------------------------------------------------------------------- */

static void set_default(uint64_t *to, uint64_t value)
{
	if (!*to)
		*to = value;
}

static int check_workdir(const char *dir, struct err *err)
{
	char path[KEEPER_PATH_SIZE] = { 0 };

	if (strlen(dir) < sizeof(path))
		memcpy(path, dir, strlen(dir) + 1);
	return keeper_path_is_valid(path)
		       ? 0
		       : err_set(err, ERR_INVALID, "threads_workdir: not an absolute path");
}

static int check_limits(const struct api_threads *t, struct err *err)
{
	struct limits l = limits_default();

	l.memory_bytes = t->memory_bytes;
	l.cpu_milli = t->cpu_milli < LIMITS_CPU_MILLI_MAX ? (uint32_t)t->cpu_milli : UINT32_MAX;
	l.pids = t->pids < LIMITS_PIDS_MAX ? (uint32_t)t->pids : UINT32_MAX;
	l.file_bytes = t->file_bytes;
	l.disk_bytes = t->disk_bytes;
	if (limits_check(&l, "threads: ", err) < 0)
		return -1;
	if (t->file_bytes > t->disk_bytes)
		return err_set(err, ERR_INVALID, "threads_file_size: more than threads_disk");
	return 0;
}

/* As in /v1, a limit that somebody asked for is enforced, or there is no sandbox. */
static unsigned demand_of(const struct api_threads *t)
{
	return (t->memory_bytes || t->cpu_milli || t->pids ? KEEPER_DEMAND_CGROUP : 0) |
	       (t->disk_bytes ? KEEPER_DEMAND_DISK : 0);
}

int api_threads_check(struct api_threads *t, struct err *err)
{
	uint32_t uid = 1, gid = 1;

	t->demand = demand_of(t);
	set_default(&t->memory_bytes, 256 << 20);
	set_default(&t->cpu_milli, 250);
	set_default(&t->pids, 128);
	set_default(&t->file_bytes, 100 << 20);
	set_default(&t->disk_bytes, 500 << 20);
	set_default(&t->files, 1000);
	if (!t->idle_ms)
		t->idle_ms = 30 * (int64_t)MINUTE_MS;
	if (!t->user)
		t->user = default_user;
	if (!t->workdir)
		t->workdir = default_workdir;
	if (strcmp(t->user, default_user) != 0 &&
	    (template_parse_user(t->user, &uid, &gid, err) != 1 || !uid || !gid))
		return err_set(err, ERR_INVALID, "threads_user: \"%s\", or a number other than 0",
			       default_user);
	return check_workdir(t->workdir, err) < 0 ? -1 : check_limits(t, err);
}

static int set_copy(char **to, const char *text, struct err *err)
{
	*to = strdup(text);
	return *to ? 0 : err_sys(err, ENOMEM, "session");
}

/* How many files there are is looked at when one is sent: what holds files on disk counts bytes
 * only. */
static int make_spec(const struct api_threads *t, struct template *ret, struct err *err)
{
	ret->demand = t->demand;
	if (template_set_limit(ret, "memory_bytes", t->memory_bytes, err) < 0 ||
	    template_set_limit(ret, "cpu_milli", t->cpu_milli, err) < 0 ||
	    template_set_limit(ret, "pids", t->pids, err) < 0 ||
	    template_set_limit(ret, "file_bytes", t->file_bytes, err) < 0 ||
	    template_set_limit(ret, "disk_bytes", t->disk_bytes, err) < 0 ||
	    set_copy(&ret->user, t->user, err) < 0)
		return -1;
	return set_copy(&ret->workdir, t->workdir, err);
}

/* ---- answers --------------------------------------------------------------------------------- */

static const char *sentence(const struct api_call *c, const struct err *err, unsigned status)
{
	if (err->code == ERR_UNAVAILABLE && err->sys == EAGAIN)
		return "Pool at max capacity, try again later";
	if (status == 404 && c->route)
		return err->sys == ENOENT ? "File not found" : "Invalid or expired session";
	return problem_sentence(err);
}

/* What a handler finds wrong is a field's fault; what was wrong before is the request's. */
static unsigned put_problem(struct api_call *c, const struct err *err, struct json_out *j)
{
	unsigned status = api_status(err);

	if (status == 400 && c->route)
		status = 422;
	if (status == 410)
		status = 404;
	json_out_object(j, NULL);
	json_out_str(j, "detail", sentence(c, err, status));
	json_out_end(j);
	return status;
}

const struct api_surface threads_surface = { .problem = put_problem };

int threads_refuse(struct api_call *c, unsigned status, const char *detail, struct err *err)
{
	struct json_out j;

	api_out(&j);
	json_out_object(&j, NULL);
	json_out_str(&j, "detail", detail);
	json_out_end(&j);
	return api_reply(c, status, &j, err);
}

void threads_refuse_begin(struct json_out *j, const char *error)
{
	api_out(j);
	json_out_object(j, NULL);
	json_out_object(j, "detail");
	json_out_str(j, "error", error);
}

int threads_refuse_end(struct api_call *c, unsigned status, struct json_out *j, struct err *err)
{
	json_out_end(j);
	json_out_end(j);
	return api_reply(c, status, j, err);
}

void threads_put_mb(struct json_out *j, const char *key, uint64_t bytes)
{
	char text[32];

	if (bytes % (1 << 20) == 0)
		snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes >> 20);
	else
		snprintf(text, sizeof(text), "%.2f", (double)bytes / (1 << 20));
	json_out_raw(j, key, text, strlen(text));
}

int threads_text(const json_t *b, const char *name, size_t max, const char **ret, struct err *err)
{
	const char *text = NULL;

	if (api_str(b, name, &text, err) < 0)
		return -1;
	if (!text)
		return err_set(err, ERR_INVALID, "%s: missing", name);
	if (!*text || strlen(text) > max)
		return err_set(err, ERR_INVALID, "%s: 1 to %zu bytes", name, max);
	*ret = text;
	return 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

static const char *thread_of(const struct store_session *s)
{
	for (size_t i = 0; i < s->nbindings; i++)
		if (strcmp(s->bindings[i].kind, "thread") == 0)
			return s->bindings[i].key;
	return NULL;
}

/* As the session has them, whatever the settings were when it was made. */
static void put_place(struct api_call *c, struct json_out *j, const struct store_session *s,
		      bool with_user)
{
	const struct api_threads *t = &c->api->opts.threads;
	struct template spec;
	auto_call(template_fini) struct template *guard = &spec;
	struct err ignored;

	(void)guard;
	template_init(&spec);
	if (s->spec)
		(void)template_parse("session", s->spec, strlen(s->spec), &spec, &ignored);
	json_out_str(j, "workspace_dir", spec.workdir ? spec.workdir : t->workdir);
	if (with_user)
		json_out_str(j, "user", spec.user ? spec.user : t->user);
}

static void put_made(struct api_call *c, struct json_out *j, const char *key,
		     const struct store_session *s, const char *status)
{
	json_out_object(j, key);
	json_out_str(j, "session_id", s->id);
	json_out_str(j, "thread_id", thread_of(s));
	json_out_str(j, "status", status);
	put_place(c, j, s, true);
	api_put_iso(j, "expires_at", s->hibernate_at ? s->hibernate_at : s->expires_at);
	json_out_end(j);
}

/* Asking for one's own is a use of it; of another's nothing is told. */
static int reply_existing(struct api_call *c, const struct session_want *w, struct err *err)
{
	struct session_ref by = { .kind = w->keys->kind, .key = w->keys->key };
	struct store_session s = { 0 }, used = { 0 };
	auto_call(store_session_fini) struct store_session *guard = &s, *guard_used = &used;
	struct err ignored;
	struct json_out j;

	(void)guard, (void)guard_used;
	if (session_get(c->engine, &c->who, &by, &s, &ignored) < 0)
		return err_set(err, ERR_CONFLICT, "the session of this thread has just ended");
	if (strcmp(s.user, w->user) != 0)
		return err_set(err, ERR_DENIED, "this thread belongs to another user");
	by = (struct session_ref){ .id = s.id };
	if (session_activity(c->engine, &c->who, &by, &used, &ignored) < 0)
		used = (struct store_session){ 0 };
	api_out(&j);
	json_out_object(&j, NULL);
	put_made(c, &j, "detail", *used.id ? &used : &s, "existing");
	json_out_end(&j);
	return api_reply(c, 409, &j, err);
}

static int enter(struct api_call *c, const struct session_want *w, struct err *err)
{
	struct session_entered how = { 0 };
	struct json_out j;

	if (session_enter(c->engine, &c->who, w, &how, err) < 0) {
		if (err->code == ERR_CONFLICT)
			return reply_existing(c, w, err);
		if (err->code == ERR_NOT_FOUND) /* the template or the policy that is set */
			err->code = ERR_UNAVAILABLE;
		return -1;
	}
	api_observe(c->api, API_TIME_CREATED, how.ready_us);
	api_out(&j);
	put_made(c, &j, NULL, &how.session, "created");
	session_entered_fini(&how);
	return api_reply(c, 201, &j, err);
}

static int create_session(struct api_call *c, struct err *err)
{
	const struct api_threads *t = &c->api->opts.threads;
	struct store_binding key = { .kind = "thread" };
	struct template over;
	auto_call(template_fini) struct template *guard = &over;
	struct session_want w = { .keys = &key,
				  .nkeys = 1,
				  .over = &over,
				  .template = t->template,
				  .policy = t->policy,
				  .must_be_new = true,
				  .on_idle = SESSION_END_DESTROY };
	const char *thread = "";
	int64_t minutes = 0;
	json_t *b;

	(void)guard;
	template_init(&over);
	if (api_body(c, NULL, &b, err) < 0 ||
	    threads_text(b, "user_id", STORE_USER - 1, &w.user, err) < 0 ||
	    threads_text(b, "thread_id", STORE_KEY - 1, &thread, err) < 0 ||
	    api_int(b, "timeout_minutes", 1, MINUTES_MAX, &minutes, err) < 0)
		return -1;
	memcpy(key.key, thread, strlen(thread) + 1);
	w.idle_timeout_ms = minutes ? minutes * MINUTE_MS : t->idle_ms;
	if (v1_check_token(c, &key, &w, err) < 0 || make_spec(t, &over, err) < 0)
		return -1;
	return enter(c, &w, err);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* null: it sleeps, and looking does not wake it. */
static void put_count(struct api_call *c, struct json_out *j, const struct store_session *s)
{
	struct session_ref ref = { .id = s->id };
	auto_call(session_give_back) struct session_loan *loan = NULL;
	struct threads_survey n;
	const struct template *t;
	struct err ignored;

	if (session_peek(c->engine, &c->who, &ref, &loan, &ignored) < 0) {
		json_out_null(j, "files_count");
		return;
	}
	t = session_loan_template(loan);
	if (threads_survey(session_loan_sandbox(loan), t->user, t->workdir ? t->workdir : ".", &n,
			   &ignored) < 0)
		json_out_null(j, "files_count");
	else
		json_out_u64(j, "files_count", n.files);
}

/* One that ended by itself is told of for as long as it is known. */
static int refuse_unknown(struct api_call *c, const struct session_ref *ref, struct err *err)
{
	struct store_tombstone t;
	struct json_out j;
	bool expired;

	expired = session_tombstone(c->engine, &c->who, ref, &t, err) == 0 &&
		  api_may_see(c, t.session, err) == 0 &&
		  strcmp(t.cause.code, session_cause_name(SESSION_CAUSE_ASKED)) != 0;
	threads_refuse_begin(&j,
			     expired ? "Session expired" : "No active session found for thread_id");
	json_out_str(&j, "thread_id", ref->key);
	if (expired) {
		json_out_str(&j, "session_id", t.session);
		json_out_str(&j, "reason", t.cause.text);
		api_put_iso(&j, "expired_at", t.cause.at);
	}
	return threads_refuse_end(c, 404, &j, err);
}

static int get_session(struct api_call *c, struct err *err)
{
	struct session_ref ref = { .kind = "thread", .key = http_query(c->rq, "thread_id") };
	struct store_session s = { 0 };
	auto_call(store_session_fini) struct store_session *guard = &s;
	struct json_out j;

	(void)guard;
	if (!ref.key || !*ref.key)
		return err_set(err, ERR_INVALID, "thread_id: missing");
	if (session_get(c->engine, &c->who, &ref, &s, err) < 0 || api_may_see(c, s.id, err) < 0)
		return err->code == ERR_NOT_FOUND ? refuse_unknown(c, &ref, err) : -1;
	api_out(&j);
	json_out_object(&j, NULL);
	json_out_str(&j, "session_id", s.id);
	json_out_str(&j, "thread_id", ref.key);
	json_out_str(&j, "status", "active");
	api_put_iso(&j, "created_at", s.created_at);
	api_put_iso(&j, "last_activity", s.last_activity_at);
	put_place(c, &j, &s, false);
	put_count(c, &j, &s);
	json_out_end(&j);
	return api_reply(c, 200, &j, err);
}

static int get_status(struct api_call *c, struct err *err)
{
	struct store_session s = { 0 };
	struct session_ref ref;
	struct json_out j;

	if (api_ref(c, c->params[0], &ref, err) < 0 ||
	    session_get(c->engine, &c->who, &ref, &s, err) < 0)
		return -1;
	api_out(&j);
	json_out_object(&j, NULL);
	json_out_str(&j, "status", "active");
	json_out_str(&j, "worker", c->api->worker);
	api_put_iso(&j, "created_at", s.created_at);
	api_put_iso(&j, "last_activity", s.last_activity_at);
	json_out_end(&j);
	store_session_fini(&s);
	return api_reply(c, 200, &j, err);
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* What is not there is as clean as can be. */
static int cleanup(struct api_call *c, struct err *err)
{
	struct session_ref ref;
	struct json_out j;
	const char *id = "";
	json_t *b;

	if (api_body(c, NULL, &b, err) < 0 ||
	    threads_text(b, "session_id", STORE_KEY, &id, err) < 0)
		return -1;
	if ((api_ref(c, id, &ref, err) < 0 ||
	     session_destroy(c->engine, &c->who, &ref, NULL, NULL, err) < 0) &&
	    err->code != ERR_NOT_FOUND)
		return -1;
	api_out(&j);
	json_out_object(&j, NULL);
	json_out_str(&j, "status", "cleaned_up");
	json_out_str(&j, "session_id", id);
	json_out_end(&j);
	return api_reply(c, 200, &j, err);
}

const struct api_route api_threads[] = {
	{ "POST", "/create_session", API_SESSION, create_session, &threads_surface },
	{ "GET", "/get_session", API_SESSION, get_session, &threads_surface },
	{ "POST", "/execute", API_SESSION, threads_execute, &threads_surface },
	{ "POST", "/upload_file", API_SESSION, threads_upload, &threads_surface },
	{ "POST", "/download_file", API_SESSION, threads_download, &threads_surface },
	{ "GET", "/list_files", API_SESSION, threads_list, &threads_surface },
	{ "POST", "/cleanup", API_SESSION, cleanup, &threads_surface },
	{ "GET", "/status/{session_id}", API_SESSION, get_status, &threads_surface },
	{ 0 },
};
