/* SPDX-License-Identifier: Apache-2.0 */
/* /api/sandbox/snapshot: save the files and hibernate, and resume. */
#include <string.h>

#include "api/chat/chat.h"
#include "snapshot/snapshot.h"
#include "layers/snapshot_record.h"

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
