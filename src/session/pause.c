/* SPDX-License-Identifier: Apache-2.0 */
#include "session/pause.h"

#include "base/test_hook.h"
#include "engine/keeper_conn.h"
#include "machine/machine.h"

enum { PAUSE_WAIT_MS = 10000 };

int session_set_frozen(struct session *n, bool frozen, struct err *err)
{
	struct keeper_request req =
		keeper_client_request(frozen ? KEEPER_FREEZE : KEEPER_THAW, n->rec.sandbox);

	return keeper_conn_call(n->engine, &req, NULL, err);
}

static int set_paused(struct session *n, bool paused, const char *actor, struct err *err)
{
	auto_fini(store_session_fini) struct store_session s = { 0 };

	if (store_session_copy(&n->rec, &s, err) < 0)
		return -1;
	s.paused = paused;
	return session_update_as(n, &s, paused ? "pause" : "unpause", actor, err);
}

/* The record first: one that says paused and runs is thawed by the next use, which is harmless. */
int session_pause(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		  int64_t if_version, struct store_session *ret, struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;
	struct err second;

	if (session_lock_reconciled(e, caller, ref, if_version, &n, err) < 0 ||
	    session_require_active(n, "pause", err) < 0)
		return -1;
	if (n->rec.paused)
		return session_return_record(n, ret, err);
	/* a frozen transfer would wait for ever */
	if (!machine_wait_idle(n->machine, PAUSE_WAIT_MS))
		return err_set(err, ERR_CONFLICT, "session %s: files are being transferred", n->id);
	if (set_paused(n, true, caller->actor, err) < 0)
		return -1;
	hook_crash("pause:recorded");
	if (session_set_frozen(n, true, err) < 0) {
		/* only what runs for certain is not paused: a keeper that died had frozen it,
		 * perhaps */
		if (session_set_frozen(n, false, &second) == 0)
			(void)set_paused(n, false, caller->actor, &second);
		return -1;
	}
	return session_return_record(n, ret, err);
}

int session_thaw(struct session *n, const char *actor, struct err *err)
{
	if (!n->rec.paused)
		return 0;
	if (session_set_frozen(n, false, err) < 0)
		return -1;
	hook_crash("unpause:thawed");
	return set_paused(n, false, actor, err);
}

int session_unpause(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		    int64_t if_version, struct store_session *ret, struct err *err)
{
	auto_call(session_unlock) struct session *n = NULL;

	if (session_lock_reconciled(e, caller, ref, if_version, &n, err) < 0 ||
	    session_require_active(n, "unpause", err) < 0 ||
	    session_thaw(n, caller->actor, err) < 0)
		return -1;
	return session_return_record(n, ret, err);
}
