/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sessions/{id}/...: state changes, probes and statistics of a session. */

#include "api/core/internal.h"
#include "api/v1/v1_sessions.h"

enum { PROBE_MAX_MS = 60000 };

static int parse_version(struct api_call *c, int64_t *ret, struct err *err)
{
	json_t *b;

	if (api_body(c, "if_version", &b, err) < 0)
		return -1;
	return api_int(b, "if_version", 1, INT64_MAX, ret, err);
}

static int change_state(struct api_call *c, v1_move_fn *fn, struct err *err)
{
	struct store_session s = { 0 };
	struct session_ref ref;
	int64_t version = 0;

	if (api_ref(c, c->params[0], &ref, err) < 0 || parse_version(c, &version, err) < 0 ||
	    fn(c->engine, &c->caller, &ref, version, &s, err) < 0)
		return -1;
	return v1_reply_session(c, 200, &s, err);
}

int v1_pause_session(struct api_call *c, struct err *err)
{
	return change_state(c, session_pause, err);
}

int v1_unpause_session(struct api_call *c, struct err *err)
{
	return change_state(c, session_unpause, err);
}

int v1_hibernate_session(struct api_call *c, struct err *err)
{
	return change_state(c, session_hibernate, err);
}

int v1_resume_session(struct api_call *c, struct err *err)
{
	auto_fini(session_enter_result_fini) struct session_enter_result how = { 0 };
	struct session_ref ref;
	int64_t version = 0;

	if (api_ref(c, c->params[0], &ref, err) < 0 || parse_version(c, &version, err) < 0 ||
	    session_resume(c->engine, &c->caller, &ref, version, &how, err) < 0)
		return -1;
	return v1_reply_entered(c, &how, err);
}

int v1_extend_session(struct api_call *c, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };
	struct session_extension how;
	int64_t ms = 0, version = 0;
	struct session_ref ref;
	struct json_out j;
	json_t *b;

	if (api_ref(c, c->params[0], &ref, err) < 0 || api_body(c, "ms if_version", &b, err) < 0 ||
	    api_int(b, "ms", 1, INT64_MAX / 4, &ms, err) < 0 ||
	    api_int(b, "if_version", 1, INT64_MAX, &version, err) < 0 ||
	    session_extend(c->engine, &c->caller, &ref, ms, version, &how, &s, err) < 0)
		return -1;
	api_object(&j);
	api_put_session(c, &j, "session", &s);
	json_out_i64(&j, "extended_by_ms", how.by_ms);
	json_out_bool(&j, "at_maximum", how.at_maximum);
	json_out_text(&j, "reason", how.reason);
	return api_reply(c, 200, &j, err);
}

int v1_touch_session(struct api_call *c, struct err *err)
{
	struct store_session s = { 0 };
	struct session_ref ref;
	json_t *b;

	if (api_ref(c, c->params[0], &ref, err) < 0 || api_body(c, "", &b, err) < 0 ||
	    session_activity(c->engine, &c->caller, &ref, &s, err) < 0)
		return -1;
	return v1_reply_session(c, 200, &s, err);
}

/* ---- queries --------------------------------------------------------------------------------- */

static const char *get_status_name(enum session_probe_status answer)
{
	if (answer == SESSION_EXPIRED)
		return "expired";
	return answer == SESSION_PROBE_NO_SANDBOX ? "no_sandbox" : "connected";
}

int v1_probe_session(struct api_call *c, struct err *err)
{
	struct session_probe_result p;
	struct session_ref ref;
	int64_t deadline = 0;
	struct json_out j;
	json_t *b;

	if (api_ref(c, c->params[0], &ref, err) < 0 || api_body(c, "deadline_ms", &b, err) < 0 ||
	    api_int(b, "deadline_ms", 1, PROBE_MAX_MS, &deadline, err) < 0 ||
	    session_probe(c->engine, &c->caller, &ref, deadline, &p, err) < 0)
		return -1;
	api_object(&j);
	json_out_str(&j, "status", get_status_name(p.status));
	json_out_bool(&j, "verified", p.status != SESSION_PROBE_UNKNOWN);
	json_out_i64_if(&j, "expires_at", p.expires_at, p.expires_at);
	json_out_i64_if(&j, "retry_after_ms", p.retry_after_ms, p.retry_after_ms);
	api_put_cause(&j, "cause", &p.cause);
	return api_reply(c, 200, &j, err);
}

static void put_stat(struct json_out *j, const char *key, uint64_t n)
{
	json_out_i64_if(j, key, n != UINT64_MAX, (int64_t)n);
}

int v1_get_stats(struct api_call *c, struct err *err)
{
	struct keeper_stats s;
	struct session_ref ref;
	struct json_out j;
	uint64_t limit, output;

	if (api_ref(c, c->params[0], &ref, err) < 0 ||
	    session_stats(c->engine, &c->caller, &ref, &s, err) < 0 ||
	    session_disk_limit(c->engine, &c->caller, &ref, &limit, err) < 0 ||
	    session_output_memory(c->engine, &c->caller, &ref, &output, err) < 0)
		return -1;
	api_object(&j);
	json_out_object(&j, "stats");
	json_out_u64(&j, "memory_bytes", s.memory_bytes);
	put_stat(&j, "memory_peak_bytes", s.memory_peak_bytes ? s.memory_peak_bytes : UINT64_MAX);
	json_out_u64(&j, "output_memory_bytes", output);
	json_out_u64(&j, "oom_kills", s.oom_kills);
	json_out_u64(&j, "cpu_us", s.cpu_us);
	json_out_u64(&j, "pids", s.pids);
	put_stat(&j, "pids_peak", s.pids_peak);
	json_out_u64(&j, "pids_denied", s.pids_denied);
	put_stat(&j, "io_read_bytes", s.io_read_bytes);
	put_stat(&j, "io_write_bytes", s.io_write_bytes);
	put_stat(&j, "disk_bytes", s.disk_bytes);
	put_stat(&j, "disk_limit_bytes", limit);
	json_out_bool(&j, "disk_full", s.disk_full != 0);
	return api_reply(c, 200, &j, err);
}
