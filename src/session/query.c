/* SPDX-License-Identifier: Apache-2.0 */
/* Reads: they take no session lock and never write. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/internal.h"
#include "engine/keeper_conn.h"
#include "session/query.h"
#include "session/session.h"

void session_ref_set_not_found(const struct session_ref *ref, struct err *err)
{
	if (ref->id)
		err_set(err, ERR_NOT_FOUND, "no session %.64s", ref->id);
	else
		err_set(err, ERR_NOT_FOUND, "no session with %.32s '%.128s'",
			ref->kind ? ref->kind : "key", ref->key ? ref->key : "");
}

int session_ref_binding(const struct session_ref *ref, struct store_binding *ret, struct err *err)
{
	struct store_binding b = { 0 };

	if (!ref->key || !*ref->key || strlen(ref->key) >= sizeof(b.key) ||
	    (ref->kind && strlen(ref->kind) >= sizeof(b.kind)))
		return session_ref_not_found(ref, err);
	snprintf(b.kind, sizeof(b.kind), "%s", ref->kind ? ref->kind : "key");
	snprintf(b.key, sizeof(b.key), "%s", ref->key);
	*ret = b;
	return 0;
}

/* A destroyed session is reported with its cause as long as its tombstone is kept. */
void session_ref_set_gone(struct engine *e, const struct caller *caller,
			  const struct session_ref *ref, struct err *err)
{
	struct store_tombstone t;
	struct err none;

	if (session_tombstone(e, caller, ref, &t, &none) < 0)
		return;
	err_set(err, ERR_NOT_FOUND, "session %s was destroyed (%s)%s%s", t.session, t.cause.code,
		*t.cause.text ? ": " : "", t.cause.text);
	err->sys = ESTALE;
}

int session_tombstone(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		      struct store_tombstone *ret, struct err *err)
{
	struct store_tombstone t;
	struct store_binding by;
	int r = session_ref_not_found(ref, err);

	if (ref->id) {
		if (!*ref->id || strlen(ref->id) >= STORE_ID)
			return session_ref_not_found(ref, err);
		WITH_STORE(e, st)
		r = store_tombstone_get(st, ref->id, &t, err);
	} else {
		if (session_ref_binding(ref, &by, err) < 0)
			return -1;
		WITH_STORE(e, st)
		r = store_tombstone_find(st, caller->tenant, &by, &t, err);
	}
	if (r < 0)
		return err->code == ERR_NOT_FOUND ? session_ref_not_found(ref, err) : -1;
	if (strcmp(t.tenant, caller->tenant) != 0)
		return session_ref_not_found(ref, err);
	*ret = t;
	return 0;
}

static int read_record(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		       struct store_session *ret, struct err *err)
{
	struct store_binding by;
	int r = -1;

	if (ref->id) {
		if (!*ref->id || strlen(ref->id) >= STORE_ID)
			return session_ref_not_found(ref, err);
		if (session_copy_record(e, ref->id, ret))
			return 0;
		WITH_STORE(e, st)
		r = store_session_get(st, ref->id, ret, err);
		return r < 0 && err->code == ERR_NOT_FOUND ? session_ref_not_found(ref, err) : r;
	}
	if (session_ref_binding(ref, &by, err) < 0)
		return -1;
	WITH_STORE(e, st)
	r = store_session_find(st, caller->tenant, &by, ret, err);
	return r < 0 && err->code == ERR_NOT_FOUND ? session_ref_not_found(ref, err) : r;
}

/* Deadlines in memory are ahead of those in the store. */
static void refresh_record(struct engine *e, struct store_session *s)
{
	struct store_session fresh;

	if (!session_copy_record(e, s->id, &fresh))
		return;
	store_session_fini(s);
	*s = fresh;
}

int session_get(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		struct store_session *ret, struct err *err)
{
	struct store_session s;

	if (read_record(e, caller, ref, &s, err) < 0)
		return err->code == ERR_NOT_FOUND ? session_ref_gone(e, caller, ref, err) : -1;
	refresh_record(e, &s);
	if (strcmp(s.tenant, caller->tenant) == 0 && s.state != SESSION_DESTROYING) {
		*ret = s;
		return 0;
	}
	(void)session_ref_not_found(ref, err);
	store_session_fini(&s);
	return session_ref_gone(e, caller, ref, err);
}

bool session_is_foreign(struct engine *e, const struct caller *caller, const char *id)
{
	struct session_ref ref = { .id = id };
	struct store_session s;
	struct err ignored = { 0 };
	bool anothers;

	if (read_record(e, caller, &ref, &s, &ignored) < 0)
		return false;
	anothers = s.state != SESSION_DESTROYING && strcmp(s.tenant, caller->tenant) != 0;
	store_session_fini(&s);
	return anothers;
}

int session_list(struct engine *e, const struct store_session_filter *f, struct store_page page,
		 struct store_session_list *ret, struct err *err)
{
	int r = -1;

	WITH_STORE(e, st)
	r = store_session_list(st, f, page, ret, err);
	for (size_t i = 0; r == 0 && i < ret->count; i++)
		refresh_record(e, &ret->items[i]);
	return r;
}

int session_stats(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		  struct keeper_stats *ret, struct err *err)
{
	struct store_session s;
	int r;

	if (session_get(e, caller, ref, &s, err) < 0)
		return -1;
	if (s.runtime == SESSION_RUNTIME_LIVE)
		r = keeper_conn_stats(e, s.sandbox, ret, err);
	else
		r = err_set(err, ERR_CONFLICT, "session %s is %s: no sandbox to measure", s.id,
			    state_machine_name(&session_states, s.state));
	store_session_fini(&s);
	return r;
}

int session_is_durable(struct engine *e, const struct caller *caller, const struct session_ref *ref,
		       bool *ret, struct err *err)
{
	struct store_session s;
	struct store_layer l = { .durable = true };
	int r = 0;

	if (session_get(e, caller, ref, &s, err) < 0)
		return -1;
	/* what lies below it was there when it was synced */
	if (*s.layer)
		WITH_STORE(e, st)
	r = store_layer_get(st, s.layer, &l, err);
	store_session_fini(&s);
	if (r < 0)
		return -1;
	*ret = l.durable;
	return 0;
}
