/* SPDX-License-Identifier: Apache-2.0 */
#include "session/hibernate.h"
#include "session/session.h"

static int archive(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		   int64_t if_version, enum session_event ev, struct store_session *ret,
		   struct err *err)
{
	enum session_state already = ev == SESSION_ARCHIVE ? SESSION_ARCHIVED : SESSION_HIBERNATED;
	struct session_cause_opts why = { SESSION_CAUSE_REQUESTED, NULL, caller->actor };
	auto_call(session_unlock) struct session *n = NULL;

	if (session_lock_reconciled(e, caller, ref, if_version, &n, err) < 0)
		return -1;
	if (ev == SESSION_ARCHIVE && hibernate_if_active(n, caller->actor, err) < 0)
		return -1;
	if (n->rec.state != already && session_transition(n, ev, &why, NULL, NULL, err) < 0)
		return -1;
	return session_return_record(n, ret, err);
}

int session_archive(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		    int64_t if_version, struct store_session *ret, struct err *err)
{
	return archive(e, caller, ref, if_version, SESSION_ARCHIVE, ret, err);
}

int session_unarchive(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		      int64_t if_version, struct store_session *ret, struct err *err)
{
	return archive(e, caller, ref, if_version, SESSION_UNARCHIVE, ret, err);
}
