/* SPDX-License-Identifier: Apache-2.0 */
/* /api/sandbox: create, stop, status, extend, snapshots. */
#include <string.h>

#include "base/clock.h"
#include "api/chat/chat.h"
#include "api/chat/chat_repo.h"
#include "api/core/internal.h"
#include "layers/snapshot_record.h"
#include "snapshot/snapshot.h"

/* ---- create ---------------------------------------------------------------------------------- */

struct wanted {
	const char *session, *template, *repository;
};

static int parse_request(struct api_call *c, struct wanted *w, struct err *err)
{
	const char *branch; /* repositories are not supported without a network */
	json_t *b;

	if (chat_body(c, &b, err) < 0 || api_str(b, "sessionId", &w->session, err) < 0 ||
	    api_str(b, "template", &w->template, err) < 0 ||
	    api_str(b, "branch", &branch, err) < 0 ||
	    api_str(b, "repoUrl", &w->repository, err) < 0)
		return -1;
	if (w->session && !*w->session)
		return chat_missing(c, "sessionId", err);
	if (w->repository && !chat_is_repository(w->repository))
		return err_set(err, ERR_INVALID, "Invalid repository URL");
	return 0;
}

static int create_session(struct api_call *c, const struct wanted *w,
			  struct session_enter_result *ret, struct err *err)
{
	struct session_opts want = { .template = w->template, .user = *c->user ? c->user : NULL };

	if (chat_check_create(c, c->user, err) < 0)
		return -1;
	return w->repository ? chat_no_network(err) : chat_enter(c, &want, ret, err);
}

static int start_sandbox(struct api_call *c, const struct wanted *w,
			 struct session_enter_result *ret, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct session_ref ref = { .id = s.id };

	if (chat_session(c, w->session, &s, err) < 0)
		return -1;
	if (w->repository)
		return chat_no_network(err);
	if (w->template && strcmp(w->template, s.template) != 0)
		return err_set(err, ERR_CONFLICT,
			       "template: the session uses \"%s\", which cannot be changed",
			       s.template);
	return session_resume(c->engine, &c->caller, &ref, 0, ret, err);
}

int chat_create_sandbox(struct api_call *c, struct err *err)
{
	auto_fini(session_enter_result_fini) struct session_enter_result how = { 0 };
	const struct store_session *s = &how.session;
	int64_t began_us = clock_mono_us();
	struct wanted w = { 0 };
	struct json_out j;

	if (parse_request(c, &w, err) < 0 ||
	    (w.session ? start_sandbox : create_session)(c, &w, &how, err) < 0)
		return -1;
	histogram_add(&c->api->entered[how.outcome], (uint64_t)(clock_mono_us() - began_us));
	api_object(&j);
	json_out_str(&j, "sessionId", s->id);
	json_out_str(&j, "sandboxId", s->sandbox);
	json_out_i64(&j, "createdAt", s->started_at);
	json_out_i64(&j, "timeout", s->expires_at - s->started_at);
	json_out_str(&j, "mode", "lodge");
	json_out_object(&j, "timing");
	json_out_u64(&j, "readyMs", (how.ready_us + 999) / 1000);
	json_out_end(&j);
	json_out_bool(&j, "stateLost", how.state_lost);
	return api_reply(c, 200, &j, err);
}

int chat_stop_sandbox(struct api_call *c, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 }, after = { 0 };
	struct session_ref ref = { .id = s.id };
	bool stopped;
	struct json_out j;

	if (chat_find(c, &s, err) < 0)
		return -1;
	stopped = s.state == SESSION_NONE;
	if (!stopped && session_hibernate(c->engine, &c->caller, &ref, 0, &after, err) < 0)
		return -1;
	stopped |= after.generation == s.generation; /* no sandbox was running */
	api_object(&j);
	json_out_bool(&j, "success", true);
	if (stopped)
		json_out_bool(&j, "alreadyStopped", true);
	return api_reply(c, 200, &j, err);
}

/* ---- queries --------------------------------------------------------------------------------- */

int chat_get_status(struct api_call *c, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct json_out j;
	bool active;

	if (chat_find(c, &s, err) < 0)
		return -1;
	active = session_is_active(&s, engine_now(c->engine));
	api_object(&j);
	json_out_str(&j, "status", active ? "active" : "no_sandbox");
	json_out_i64(&j, "lifecycleVersion", s.version);
	chat_put_status(c, &j, &s);
	return api_reply(c, 200, &j, err);
}

/* A probe that could not run proves as little as one without a response. */
static int probe(struct api_call *c, const struct store_session *s,
		 struct session_probe_result *ret, struct err *err)
{
	struct session_ref ref = { .id = s->id };

	if (session_probe(c->engine, &c->caller, &ref, 0, ret, err) == 0)
		return 0;
	if (!api_error_is_retryable(err) || s->runtime != SESSION_RUNTIME_LIVE)
		return -1;
	*ret = (struct session_probe_result){ .status = SESSION_PROBE_UNKNOWN,
					      .expires_at = s->expires_at };
	return 0;
}

/* Without a sandbox the recorded end of the last one decides, whatever noticed it first. An
 * unverified sandbox counts as connected until its lifetime ends. */
static const char *get_status_name(const struct store_session *s,
				   const struct session_probe_result *p, int64_t now)
{
	bool over = p->status == SESSION_PROBE_UNKNOWN && p->expires_at && p->expires_at <= now;

	if (s->runtime != SESSION_RUNTIME_LIVE)
		return s->ended == SESSION_ENDED_OTHERWISE ? "expired" : "no_sandbox";
	return p->status == SESSION_EXPIRED || over ? "expired" : "connected";
}

/* s: the record after the probe. */
static int reply_probe(struct api_call *c, const struct store_session *s,
		       const struct session_probe_result *p, struct err *err)
{
	const char *status = get_status_name(s, p, engine_now(c->engine));
	struct json_out j;

	api_object(&j);
	json_out_str(&j, "status", status);
	if (strcmp(status, "connected") == 0) {
		json_out_bool(&j, "verified", p->status == SESSION_PROBE_CONNECTED);
		json_out_i64_if(&j, "expiresAt", s->expires_at, s->expires_at);
	}
	chat_put_status(c, &j, s);
	return api_reply(c, 200, &j, err);
}

int chat_reconnect(struct api_call *c, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 }, after = { 0 };
	struct session_probe_result p;

	if (chat_find(c, &s, err) < 0 || probe(c, &s, &p, err) < 0 ||
	    chat_session(c, s.id, &after, err) < 0)
		return -1;
	return reply_probe(c, &after, &p, err);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

int chat_extend(struct api_call *c, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 }, after = { 0 };
	struct session_ref ref = { .id = s.id };
	struct session_extension how;
	struct json_out j;

	if (chat_find(c, &s, err) < 0)
		return -1;
	if (session_extend(c->engine, &c->caller, &ref, 0, 0, &how, &after, err) < 0)
		return err->code == ERR_CONFLICT ? chat_not_running(err) : -1;
	api_object(&j);
	json_out_bool(&j, "success", true);
	json_out_i64_if(&j, "expiresAt", after.expires_at, after.expires_at);
	json_out_i64(&j, "extendedBy", how.by_ms);
	return api_reply(c, 200, &j, err);
}

int chat_touch(struct api_call *c, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct session_ref ref = { .id = s.id };
	struct json_out j;
	bool active;

	if (chat_find(c, &s, err) < 0)
		return -1;
	active = session_activity(c->engine, &c->caller, &ref, NULL, err) == 0;
	if (!active && err->code != ERR_CONFLICT)
		return -1;
	api_object(&j);
	json_out_bool(&j, "success", active);
	if (!active)
		json_out_str(&j, "reason", "not-active");
	return api_reply(c, 200, &j, err);
}

/* ---- snapshots ------------------------------------------------------------------------------- */

/* Hibernates first: the snapshot then needs no copy, and nothing is written after it. */
static int save_snapshot(struct api_call *c, const struct store_session *s,
			 struct store_snapshot *ret, struct err *err)
{
	struct session_ref ref = { .id = s->id };
	struct snapshot_opts want = { 0 };

	if (!session_is_active(s, engine_now(c->engine)))
		return chat_not_running(err);
	if (!api_query_flag(c, "live") &&
	    session_hibernate(c->engine, &c->caller, &ref, 0, NULL, err) < 0)
		return err->code == ERR_CONFLICT ? chat_not_running(err) : -1;
	return session_snapshot(c->engine, &c->caller, &ref, &want, ret, err);
}

int chat_create_snapshot(struct api_call *c, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct store_snapshot snap = { 0 };
	struct json_out j;

	if (chat_find(c, &s, err) < 0 || save_snapshot(c, &s, &snap, err) < 0)
		return -1;
	api_object(&j);
	json_out_str(&j, "snapshotId", snap.id);
	json_out_i64(&j, "createdAt", snap.created_at);
	return api_reply(c, 200, &j, err);
}

/* The snapshot with its files, or the sandbox they came from. */
static void put_origin(struct api_call *c, struct json_out *j, const struct store_session *s)
{
	struct store_snapshot snap = { 0 };
	struct err ignored;
	bool same = *s->snapshot &&
		    snapshot_get(c->engine, &c->caller, s->snapshot, &snap, &ignored) == 0 &&
		    strcmp(snap.layer, s->layer) == 0;

	json_out_str(j, "restoredFrom", same ? s->snapshot : *s->layer ? s->layer : NULL);
}

/* Uses the record as it was before waiting for the lock. */
static int check_resumable(const struct store_session *s, struct err *err)
{
	if (s->state == SESSION_HIBERNATING)
		return err_set(err, ERR_CONFLICT, "A snapshot is in progress, try again later");
	if (s->runtime == SESSION_RUNTIME_NONE && s->state != SESSION_PROVISIONING)
		return chat_no_files(err);
	return 0;
}

int chat_resume_snapshot(struct api_call *c, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	auto_fini(session_enter_result_fini) struct session_enter_result how = { 0 };
	struct session_ref ref = { .id = s.id };
	struct json_out j;

	if (chat_find(c, &s, err) < 0 || check_resumable(&s, err) < 0 ||
	    session_resume(c->engine, &c->caller, &ref, 0, &how, err) < 0)
		return -1;
	api_object(&j);
	json_out_bool(&j, "success", true);
	if (how.outcome == SESSION_REUSED)
		json_out_bool(&j, "alreadyRunning", true);
	put_origin(c, &j, &how.session);
	json_out_str(&j, "sandboxId", how.session.sandbox);
	json_out_bool(&j, "stateLost", how.state_lost);
	return api_reply(c, 200, &j, err);
}
